// Rights by the scopes of a token, the operator's choice of a tenant, and the end of streams whose token is revoked.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { WebSocket } from "ws";
import { EventReader } from "../fixture/event-reader.ts";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import { asUser, makeToken, startFeed } from "../fixture/tokens.ts";

const RIGHTS = ["publish", "subscribe", "manage"] as const;
type Right = (typeof RIGHTS)[number];

/** Operations and the rights that are each sufficient. */
const operations: [method: string, path: string, body: unknown, rights: readonly Right[]][] = [
  ["POST", "/api/v1/publish", { topic: "a", payload: "x" }, ["publish"]],
  ["POST", "/api/v1/publish/batch", { messages: [{ topic: "a", payload: "x" }] }, ["publish"]],
  ["GET", "/api/v1/tail?topic=a", undefined, ["subscribe"]],
  ["GET", "/api/v1/topics/a/dlq", undefined, ["subscribe"]],
  ["POST", "/api/v1/ack", { topic: "a", group: "g", message_id: "m" }, ["subscribe"]],
  ["POST", "/api/v1/nack", { topic: "a", group: "g", message_id: "m" }, ["subscribe"]],
  ["GET", "/api/v1/offsets?group=g", undefined, ["subscribe"]],
  ["POST", "/api/v1/offsets", { group: "g", topic: "a", offset: 0 }, ["subscribe"]],
  ["POST", "/api/v1/replay", { group_name: "g", topic: "a", start_offset: 0 }, ["subscribe"]],
  ["GET", "/api/v1/topics/a/messages", undefined, ["subscribe"]],
  ["GET", "/api/v1/topics/a/messages/0/0", undefined, ["subscribe"]],
  ["GET", "/api/v1/events/", undefined, ["subscribe"]],
  ["GET", "/api/v1/topics/a/dlq/triage", undefined, ["subscribe"]],
  ["GET", "/api/v1/dlq", undefined, ["subscribe"]],
  ["GET", "/api/v1/dlq/causes", undefined, ["subscribe"]],
  ["POST", "/api/v1/topics/a/schema/check", { schema: {} }, ["subscribe"]],
  ["POST", "/api/v1/groups/g", { topic: "a", to: "end", dry_run: true }, ["subscribe"]],
  ["POST", "/api/v1/dlq/requeue", { ids: ["m"] }, ["manage"]],
  ["DELETE", "/api/v1/dlq", { ids: ["m"] }, ["manage"]],
  ["DELETE", "/api/v1/groups/none", undefined, ["manage"]],
  ["POST", "/api/v1/topics", { name: "b" }, ["manage"]],
  ["POST", "/api/v1/topics/retention", { topic: "a", retention_ms: 1_000_000 }, ["manage"]],
  ["POST", "/api/v1/topics/a/schema", {}, ["manage"]],
  ["DELETE", "/api/v1/topics/a/schema", undefined, ["manage"]],
  ["PUT", "/api/v1/topics/a/transform", undefined, ["manage"]],
  ["DELETE", "/api/v1/topics/a/transform", undefined, ["manage"]],
  ["POST", "/api/v1/topics/a/dlq", { dlq_topic: "d" }, ["manage"]],
  ["POST", "/api/v1/topics/a/dlq/requeue", { message_id: "m" }, ["manage"]],
  ["DELETE", "/api/v1/topics/b", undefined, ["manage"]],
  ["GET", "/api/v1/topics", undefined, RIGHTS],
  ["GET", "/api/v1/topics/a", undefined, RIGHTS],
  ["GET", "/api/v1/topics/a/schema", undefined, RIGHTS],
  ["GET", "/api/v1/topics/a/dlq/summary", undefined, RIGHTS],
  ["GET", "/api/v1/topics/a/transform", undefined, RIGHTS],
  ["GET", "/api/v1/topics/a/anomalies", undefined, RIGHTS],
  ["GET", "/api/v1/groups/g/lag", undefined, RIGHTS],
  ["GET", "/api/v1/consumers/lag", undefined, RIGHTS],
  ["GET", "/api/v1/groups/g", undefined, RIGHTS],
  ["GET", "/api/v1/schemas", undefined, RIGHTS],
  ["GET", "/api/v1/stats", undefined, RIGHTS],
];

async function start(t: TestContext) {
  const feed = await startFeed(t);
  return { pulse: await startPulseHere(t, feed.env), feed };
}

function ask(
  pulse: PulseHere,
  [method, path, body]: readonly [string, string, unknown, ...unknown[]],
  headers: Record<string, string>,
) {
  const json = body === undefined ? {} : { "content-type": "application/json" };
  return pulse.get(path, {
    method,
    headers: { ...headers, ...json },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

test("each operation requires its right; a user without it gets 403 with the missing scope", async (t) => {
  const { pulse } = await start(t);
  await ask(pulse, operations[0]!, asUser("publish"));
  for (const operation of operations) {
    const [method, path, , sufficient] = operation;
    for (const right of RIGHTS) {
      const { status, headers } = await ask(pulse, operation, asUser(right));
      const name = `${method} ${path} with pulse:${right}: ${status}`;
      if (sufficient.includes(right)) {
        assert.notEqual(status, 403, name);
        continue;
      }
      assert.equal(status, 403, name);
      const challenge = headers.get("www-authenticate") ?? "";
      assert.equal(challenge, `Bearer error="insufficient_scope", scope="pulse:${sufficient[0]}"`);
    }
    const { status } = await ask(pulse, operation, { authorization: `Bearer ${makeToken({})}` });
    assert.equal(status, 403, `${method} ${path} without a scope`);
  }
});

test("subscribing by server-sent events and WebSocket requires the right to subscribe", async (t) => {
  const { pulse } = await start(t);
  const status = async (right: string) => {
    const reader = await EventReader.open(`${pulse.url}/api/v1/subscribe/a`, asUser(right));
    reader.close();
    return reader.status;
  };
  assert.deepEqual([await status("publish"), await status("subscribe")], [403, 200]);
  const open = async (path: string, right: string): Promise<string> => {
    const socket = new WebSocket(`${pulse.url.replace("http", "ws")}${path}`, {
      headers: asUser(right),
    });
    // `once` rejects with the error of the handshake.
    const outcome = await once(socket, "open").then(
      () => "open",
      (error: Error) => error.message,
    );
    socket.terminate();
    return outcome;
  };
  assert.match(await open("/ws/subscribe/a", "manage"), /403/);
  assert.equal(await open("/ws/subscribe/a", "subscribe"), "open");
  assert.equal(await open("/api/v1/stats/ws", "publish"), "open");
});

test("the operator acts for the tenant of ?tenant= and lists all tenants with *", async (t) => {
  const { pulse } = await start(t);
  const message = { topic: "a", payload: "from main" };
  assert.equal((await pulse.post("/api/v1/publish", message, asUser("publish"))).status, 200);
  await pulse.post("/api/v1/publish", { topic: "own", payload: "x" });
  const names = async (query: string) => {
    const { body } = await pulse.get(`/api/v1/topics${query}`);
    return body.topics.map(({ name, tenant }: { name: string; tenant?: string }) =>
      tenant === undefined ? name : `${tenant}:${name}`,
    );
  };
  assert.deepEqual(await names(""), ["own"]);
  assert.deepEqual(await names("?tenant=main"), ["a"]);
  assert.deepEqual((await names("?tenant=*")).sort(), [":own", "main:a"]);
  const tail = await pulse.get("/api/v1/tail?topic=a&tenant=main");
  assert.equal(tail.body.messages[0].payload, "from main");
  assert.equal((await pulse.get("/api/v1/stats?tenant=main")).body.topics_count, 1);
  const reader = await EventReader.open(`${pulse.url}/api/v1/subscribe/a?tenant=main`, {
    authorization: "Bearer operator-token",
  });
  await pulse.post("/api/v1/publish?tenant=main", { topic: "a", payload: "from the operator" });
  const [event] = await reader.wait(1);
  assert.equal(event!.data["payload"], "from the operator");
  reader.close();
  assert.equal((await pulse.get("/api/v1/topics?tenant=a:b")).status, 400);
});

test("a user may name only the own tenant", async (t) => {
  const { pulse } = await start(t);
  const headers = asUser("publish");
  assert.equal((await pulse.get("/api/v1/topics?tenant=main", { headers })).status, 200);
  for (const tenant of ["other", "*", ""]) {
    const { status } = await pulse.get(`/api/v1/topics?tenant=${tenant}`, { headers });
    assert.equal(status, 403, tenant);
  }
});

test("streams end with their session", async (t) => {
  const { pulse } = await start(t);
  const session_exp = Math.floor(Date.now() / 1000) + 3;
  const headers = asUser("subscribe", { sid: "s1", session_exp });
  const url = `${pulse.url}/api/v1/subscribe/a`;
  const socket = new WebSocket(`${pulse.url.replace("http", "ws")}/ws/subscribe/a`, { headers });
  const closed = once(socket, "close") as Promise<[number, Buffer]>;
  const text = await (await fetch(url, { headers })).text();
  assert.match(text, /event: dropped\ndata: \{"reason":"the session has ended"\}/);
  const [code, reason] = await closed;
  assert.deepEqual([code, String(reason)], [1008, "the session has ended"]);
  const late = Date.now() / 1000 - session_exp;
  assert.ok(late >= 0 && late < 3, `${late} s`);
});

test("streams of a revoked session end within 2 s, and only they", async (t) => {
  const { pulse, feed } = await start(t);
  const [one, other] = ["s1", "s2"].map((sid) => asUser("publish subscribe", { sid }));
  const url = `${pulse.url}/api/v1/subscribe/a`;
  const ended = await fetch(url, { headers: one! });
  const kept = await EventReader.open(url, other);
  const socket = new WebSocket(`${pulse.url.replace("http", "ws")}/ws/subscribe/a`, {
    headers: one!,
  });
  await once(socket, "open");
  const closed = once(socket, "close") as Promise<[number, Buffer]>;
  feed.revoke("s1");
  const startedMs = performance.now();
  const text = await ended.text();
  assert.match(text, /event: dropped\ndata: \{"reason":"the token was revoked"\}/);
  const [code, reason] = await closed;
  assert.deepEqual([code, String(reason)], [1008, "the token was revoked"]);
  const elapsedMs = performance.now() - startedMs;
  assert.ok(elapsedMs < 20_000, `it took ${elapsedMs} ms`);
  const refused = await pulse.post("/api/v1/publish", { topic: "a", payload: "x" }, one);
  assert.equal(refused.status, 401);
  assert.match(refused.body.detail, /revoked/);
  assert.equal(
    (await pulse.post("/api/v1/publish", { topic: "a", payload: "y" }, other)).status,
    200,
  );
  const [event] = await kept.wait(1);
  assert.equal(event!.data["payload"], "y");
  kept.close();
});
