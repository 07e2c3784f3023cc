// The topics that subscriptions follow are limited over all protocols, and many wildcards disturb nobody.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { test, type TestContext } from "node:test";
import { Worker } from "node:worker_threads";
import { WebSocket } from "ws";
import { startPulseHere } from "../fixture/pulse-here.ts";
import { startPulseProcess, type PulseProcess } from "../fixture/pulse-process.ts";
import type { RunningPulse } from "../fixture/running-pulse.ts";
import { makeToken, startFeed } from "../fixture/tokens.ts";
import { RawClient } from "../mqtt/client.ts";
import { StompClient } from "../stomp/client.ts";

/** Topics of a tenant in use. */
const TOPICS = 2_593;
const WILDCARDS = 990;
const SAMPLES = 200;
const BATCH = 200;

/** Sends the wildcards in one go, and again on a new connection whenever the refusal has ended the last one. */
const FLOOD = `
  const { connect } = require("node:net");
  const { parentPort, workerData } = require("node:worker_threads");
  const frames = Array.from({ length: workerData.wildcards }, (_, id) =>
    "SUBSCRIBE\\nid:" + id + "\\ndestination:/topic/#\\nack:" + (id % 2 ? "client" : "auto") + "\\n\\n\\0");
  const bytes = "CONNECT\\naccept-version:1.2\\n\\n\\0" + frames.join("");
  const open = () => {
    const socket = connect(workerData.port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.on("close", () => { parentPort.postMessage("refused"); open(); });
    socket.resume();
    socket.write(bytes);
  };
  open();
`;

async function createTopics(pulse: RunningPulse, count: number, token: string): Promise<void> {
  for (let at = 0; at < count; at += BATCH) {
    const messages = Array.from({ length: Math.min(BATCH, count - at) }, (_, index) => ({
      topic: `t.${at + index}`,
      payload: "x",
    }));
    const headers = { authorization: `Bearer ${token}` };
    const { status } = await pulse.post("/api/v1/publish/batch", { messages }, headers);
    assert.equal(status, 200);
  }
}

async function connectMqtt(t: TestContext, pulse: RunningPulse, token: string) {
  const client = await RawClient.open(pulse.mqttPort, 5);
  t.after(() => client.socket.destroy());
  await client.connect({ username: "x", password: Buffer.from(token) });
  return client;
}

/** The status of the handshake of a WebSocket subscription. */
async function openSocket(pulse: RunningPulse, path: string, token: string): Promise<number> {
  const socket = new WebSocket(`${pulse.url.replace("http", "ws")}${path}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  return new Promise((resolve, reject) => {
    socket.once("open", () => {
      socket.terminate();
      resolve(101);
    });
    socket.once("unexpected-response", (_request, { statusCode = 0 }) => resolve(statusCode));
    socket.once("error", reject);
  });
}

test("a user's subscriptions of all protocols share one limit, and each refuses in its own form", async (t) => {
  const feed = await startFeed(t);
  const pulse = await startPulseHere(t, {
    ...feed.env,
    PLATFORM_PULSE_FOLLOWED_TOPICS_PER_USER_MAX: "25",
    PLATFORM_PULSE_FOLLOWED_TOPICS_PER_TENANT_MAX: "40",
  });
  const scope = "pulse:publish pulse:subscribe pulse:manage";
  const user = makeToken({ scope });
  await createTopics(pulse, 10, user);
  const subscribe = (path: string, token = user) => {
    const abort = new AbortController();
    const headers = { authorization: `Bearer ${token}` };
    return fetch(`${pulse.url}/api/v1/subscribe/${path}`, { headers, signal: abort.signal }).then(
      (response) => ({
        status: response.status,
        headers: response.headers,
        close: () => abort.abort(),
      }),
    );
  };
  const mqtt = await connectMqtt(t, pulse, user);
  assert.deepEqual((await mqtt.subscribe("t/#")).granted, [0]);
  const stomp = await StompClient.connect(pulse.stompPort, "1.2", { login: "x", passcode: user });
  await stomp.ask("SUBSCRIBE", { id: "1", destination: "t.*", ack: "client" });
  const events = await subscribe("t.1");
  assert.equal(events.status, 200);

  assert.deepEqual((await mqtt.subscribe("+/+")).granted, [0x97], "21 and 10 are more than 25");
  assert.deepEqual((await mqtt.subscribe("t/1")).granted, [0], "a single topic has room");
  const refused = await subscribe("%23");
  assert.equal(refused.status, 429);
  assert.ok(Number(refused.headers.get("retry-after")) > 0);
  assert.equal(await openSocket(pulse, "/ws/subscribe/%23", user), 429);
  const second = await StompClient.connect(pulse.stompPort, "1.2", { login: "x", passcode: user });
  second.send("SUBSCRIBE", { id: "1", destination: "#" });
  assert.match((await second.error()).body, /subscriptions of the user follow too many topics/);

  // Another user is limited by the tenant only.
  const other = makeToken({ scope, sub: "other" });
  const first = await subscribe("%23", other);
  assert.equal(first.status, 200);
  assert.equal((await subscribe("%23", other)).status, 429, "22, 10 and 10 are more than 40");
  first.close();

  // Closed subscriptions and deleted topics make room again.
  await stomp.ask("UNSUBSCRIBE", { id: "1" });
  await pulse.get("/api/v1/topics/t.9", {
    method: "DELETE",
    headers: { authorization: `Bearer ${user}` },
  });
  assert.deepEqual((await mqtt.subscribe("+/+")).granted, [0]);
  events.close();
});

test("a topic that is created beyond the limit ends the subscription that would follow it", async (t) => {
  const feed = await startFeed(t);
  const pulse = await startPulseHere(t, {
    ...feed.env,
    PLATFORM_PULSE_FOLLOWED_TOPICS_PER_USER_MAX: "3",
  });
  const user = makeToken({ scope: "pulse:publish pulse:subscribe" });
  await createTopics(pulse, 3, user);
  const stomp = await StompClient.connect(pulse.stompPort, "1.2", { login: "x", passcode: user });
  await stomp.ask("SUBSCRIBE", { id: "1", destination: "t.*" });
  await createTopics(pulse, 4, user);
  for (;;) {
    const answer = await stomp.next();
    if (answer.command === "MESSAGE") continue;
    assert.equal(answer.command, "ERROR");
    assert.match(answer.body, /the subscription to \S*t\.\* has ended: .* too many topics/);
    break;
  }
});

test(`${WILDCARDS} wildcards over ${TOPICS} topics leave other clients and the memory alone`, async (t) => {
  const pulse = await startPulseProcess(t, { PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0" });
  await createTopics(pulse, TOPICS, "");
  const measure = async (): Promise<number> => {
    const times: number[] = [];
    for (let count = 0; count < SAMPLES; count++) {
      const startedMs = performance.now();
      assert.equal((await pulse.publish({ topic: "t.0", payload: "x" })).status, 200);
      times.push(performance.now() - startedMs);
    }
    return times.toSorted((one, other) => one - other)[Math.floor(SAMPLES * 0.99) - 1]!;
  };
  const quietMs = await measure();
  const flood = new Worker(FLOOD, {
    eval: true,
    workerData: { port: pulse.stompPort, wildcards: WILDCARDS },
  });
  t.after(() => flood.terminate());
  // The first connection was refused: it had as many as it may have before.
  await once(flood, "message");
  const busyMs = await measure();
  const rssMiB = readMemoryMiB(pulse);
  t.diagnostic(
    `publish p99 ${quietMs.toFixed(1)} ms alone, ${busyMs.toFixed(1)} ms beside them; ${rssMiB.toFixed(0)} MiB`,
  );
  // Matching that is not sliced stops everything for 25 s; a busy machine costs some hundred milliseconds.
  assert.ok(busyMs < 8_000, `p99 ${busyMs} ms`);
  assert.ok(rssMiB < 400, `${rssMiB} MiB`);
});

function readMemoryMiB({ pid }: PulseProcess): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1_024;
}
