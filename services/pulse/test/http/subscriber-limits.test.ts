// The limits of open subscribers: of each user, and of all together.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { WebSocket } from "ws";
import { EventReader } from "../fixture/event-reader.ts";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import { asUser, startFeed } from "../fixture/tokens.ts";

type Headers = Record<string, string>;

function subscribe(pulse: PulseHere, headers: Headers, topic = "a"): Promise<EventReader> {
  return EventReader.open(`${pulse.url}/api/v1/subscribe/${topic}`, headers);
}

function connect(pulse: PulseHere, path: string, headers: Headers): WebSocket {
  return new WebSocket(`${pulse.url.replace("http", "ws")}${path}`, { headers });
}

async function open(pulse: PulseHere, path: string, headers: Headers): Promise<WebSocket> {
  const socket = connect(pulse, path, headers);
  await once(socket, "open");
  return socket;
}

async function openRefused(pulse: PulseHere, path: string, headers: Headers) {
  const socket = connect(pulse, path, headers);
  socket.on("error", () => undefined);
  const [, response] = (await once(socket, "unexpected-response")) as [unknown, IncomingMessage];
  const chunks = (await response.toArray()) as Buffer[];
  const body = JSON.parse(Buffer.concat(chunks).toString()) as { code: string };
  return { status: response.statusCode, retryAfter: response.headers["retry-after"], ...body };
}

/** Opens a stream as soon as there is room again: the broker notices a closed connection a little later. */
async function subscribeOnceFree(
  pulse: PulseHere,
  headers: Headers,
  topic?: string,
): Promise<EventReader> {
  for (;;) {
    const reader = await subscribe(pulse, headers, topic);
    if (reader.status !== 429) return reader;
  }
}

test("a user has at most subscribers_per_user_max streams and sockets together", async (t) => {
  const { env } = await startFeed(t);
  const pulse = await startPulseHere(t, {
    ...env,
    PLATFORM_PULSE_SUBSCRIBERS_PER_USER_MAX: "3",
  });
  const one = asUser("subscribe", { sub: "one" });
  const stream = await subscribe(pulse, one);
  const socket = await open(pulse, "/ws/subscribe/a", one);
  const stats = await open(pulse, "/api/v1/stats/ws", one);
  assert.equal(stream.status, 200);

  const refused = await pulse.get("/api/v1/subscribe/a", { headers: one });
  assert.equal(refused.status, 429);
  assert.equal(refused.body.code, "too_many_requests");
  assert.equal(refused.body.detail, "The user has too many subscribers.");
  assert.equal(refused.headers.get("retry-after"), "5");
  for (const path of ["/ws/subscribe/a", "/api/v1/stats/ws"]) {
    const answer = await openRefused(pulse, path, one);
    assert.deepEqual(
      [answer.status, answer.code, answer.retryAfter],
      [429, "too_many_requests", "5"],
    );
  }
  // Another user, the same subject in another tenant, and the operator have room.
  for (const claims of [{ sub: "other" }, { sub: "one", tenant: "elsewhere" }]) {
    const reader = await subscribe(pulse, asUser("subscribe", claims));
    assert.equal(reader.status, 200);
    reader.close();
  }
  const operator = await subscribe(pulse, { authorization: "Bearer operator-token" });
  assert.equal(operator.status, 200);
  operator.close();

  stream.close();
  const again = await subscribeOnceFree(pulse, one);
  assert.equal(again.status, 200);
  again.close();
  socket.close();
  stats.close();
});

test("a refused or failed subscription leaves its room free", async (t) => {
  const { env } = await startFeed(t);
  const pulse = await startPulseHere(t, {
    ...env,
    PLATFORM_PULSE_SUBSCRIBERS_PER_USER_MAX: "1",
  });
  const one = asUser("subscribe", { sub: "one" });
  for (let attempt = 0; attempt < 3; attempt++) {
    const stream = await subscribeOnceFree(pulse, one, "a?from=nowhere");
    assert.equal(stream.status, 400);
    const socket = await openRefused(pulse, "/ws/subscribe/a?from=nowhere", one);
    assert.ok(socket.status === 400 || socket.status === 429, String(socket.status));
  }
  const reader = await subscribeOnceFree(pulse, one);
  assert.equal(reader.status, 200);
  reader.close();
});

test("beyond subscribers_max everybody gets 503", async (t) => {
  const { env } = await startFeed(t);
  const pulse = await startPulseHere(t, { ...env, PLATFORM_PULSE_SUBSCRIBERS_MAX: "2" });
  const readers = [
    await subscribe(pulse, asUser("subscribe", { sub: "one" })),
    await subscribe(pulse, asUser("subscribe", { sub: "two" })),
  ];
  const three = asUser("subscribe", { sub: "three" });
  const { status, body } = await pulse.get("/api/v1/subscribe/a", { headers: three });
  assert.deepEqual([status, body.code], [503, "overloaded"]);
  assert.equal((await openRefused(pulse, "/ws/subscribe/a", three)).status, 503);
  for (const reader of readers) reader.close();
});
