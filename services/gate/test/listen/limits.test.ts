// Rate limits and bounded concurrency of routes, with a real worker and real upstreams.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import type { ServerResponse } from "node:http";
import { afterEach, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { allocateSharedBuffers } from "../../src/shared-state/index.ts";
import {
  ask,
  GateWorker,
  GLOBALS,
  startGate,
  startUpstream,
  TestPlanner,
  type TestAnswer,
  type TestRoute,
} from "./gate-worker.ts";

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function startQuick(): Promise<string> {
  const upstream = await startUpstream((_request, response) => response.end("served"));
  stops.push(upstream.stop);
  return upstream.url;
}

/** An upstream that holds every request until the test lets it go. */
async function startHolding(): Promise<{ url: string; held: ServerResponse[] }> {
  const held: ServerResponse[] = [];
  const upstream = await startUpstream((request, response) => {
    response.setHeader("X-Path", request.url ?? "");
    held.push(response);
  });
  stops.push(upstream.stop);
  return { url: upstream.url, held };
}

async function startWith(routes: TestRoute[], trusted = true): Promise<GateWorker> {
  const gate = await startGate(routes, trusted ? { trustedProxies: ["127.0.0.1"] } : {});
  stops.push(() => gate.stop());
  return gate;
}

function readCode({ body }: TestAnswer): string {
  return (JSON.parse(body) as { code: string }).code;
}

test("a limit counts by client address and route; the rest get 429 with the fields of the draft", async () => {
  const target = await startQuick();
  const rateLimits = [{ name: "ip", by: { kind: "ip" } as const, perMinute: 3 }];
  const gate = await startWith([
    { prefix: "/a", targets: [target], steps: { rateLimits } },
    { prefix: "/b", targets: [target], steps: { rateLimits } },
    { prefix: "/open", targets: [target] },
  ]);
  const from = (client: string, path = "/a"): Promise<TestAnswer> =>
    ask(gate.port, path, { headers: { "X-Forwarded-For": client } });
  for (const left of [2, 1, 0]) {
    const { status, headers } = await from("192.0.2.1");
    assert.equal(status, 200);
    assert.match(String(headers["ratelimit"]), new RegExp(`^"ip";r=${left};t=6[01]$`));
    assert.equal(headers["ratelimit-policy"], '"ip";q=3;w=60');
  }
  const refused = await from("192.0.2.1");
  assert.equal(refused.status, 429);
  assert.equal(readCode(refused), "too_many_requests");
  assert.match(String(refused.headers["ratelimit"]), /^"ip";r=0;t=\d+$/);
  assert.match(String(refused.headers["retry-after"]), /^(?:[1-5]?\d|6[01])$/);
  assert.equal((await from("192.0.2.2")).status, 200, "another client");
  assert.equal((await from("192.0.2.1", "/b")).status, 200, "another route");
  assert.equal((await from("192.0.2.1", "/open")).headers["ratelimit"], undefined);
  // A subscriber has a whole /64: its addresses count as one.
  const own = await Promise.all([1, 2, 3, 4].map((host) => from(`2001:db8:1:2::${host}`)));
  assert.equal(own.filter(({ status }) => status === 200).length, 3);
  assert.equal((await from("2001:db8:1:3::1")).status, 200, "another /64");
  assert.equal(gate.metrics.readCounter("rateLimited"), 2);
});

test("a limit by header counts each value, and requests without it by address", async () => {
  const target = await startQuick();
  const by = { kind: "header", name: "X-Device" } as const;
  const gate = await startWith([
    { targets: [target], steps: { rateLimits: [{ name: "device", by, perMinute: 1 }] } },
  ]);
  const send = async (headers: Record<string, string>): Promise<number> =>
    (await ask(gate.port, "/", { headers })).status;
  assert.equal(await send({ "X-Device": "one" }), 200);
  assert.equal(await send({ "X-Device": "one" }), 429);
  assert.equal(await send({ "x-device": "two" }), 200);
  assert.equal(await send({}), 200);
  assert.equal(await send({}), 429, "leaving the field out does not avoid the limit");
});

test("two workers share one limit", async () => {
  const target = await startQuick();
  const shared = allocateSharedBuffers(2);
  const planner = new TestPlanner();
  const spec: TestRoute = {
    targets: [target],
    slot: 9,
    steps: { rateLimits: [{ name: "ip", by: { kind: "ip" }, perMinute: 10 }] },
  };
  const gates = [0, 1].map((index) => new GateWorker(shared, index, planner, 0));
  for (const gate of gates) {
    stops.push(() => gate.stop());
    assert.equal((await gate.apply({ routes: [spec], globals: GLOBALS })).type, "applied");
  }
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, at) => ask(gates[at % 2]!.port, "/")),
  );
  const admitted = answers.filter(({ status }) => status === 200).length;
  assert.ok(admitted <= 10 && admitted >= 9, String(admitted));
});

test("requests above the concurrency wait in order; the queue is bounded", async () => {
  const upstream = await startHolding();
  const concurrency = { requestsMax: 2, queueMax: 2, queueTimeoutMs: 20_000 };
  const gate = await startWith([{ targets: [upstream.url], steps: { concurrency } }]);
  const first = [ask(gate.port, "/1"), ask(gate.port, "/2")];
  await waitFor(() => upstream.held.length === 2);
  const third = ask(gate.port, "/3");
  await waitFor(() => gate.metrics.readCounter("queued") === 1);
  const fourth = ask(gate.port, "/4");
  await waitFor(() => gate.metrics.readCounter("queued") === 2);
  const fifth = await ask(gate.port, "/5");
  assert.deepEqual([fifth.status, readCode(fifth)], [503, "queue_full"]);
  assert.equal(fifth.headers["retry-after"], "1");
  upstream.held[0]!.end();
  await waitFor(() => upstream.held.length === 3);
  assert.equal(upstream.held[2]!.getHeader("X-Path"), "/3");
  upstream.held[1]!.end();
  await waitFor(() => upstream.held.length === 4);
  assert.equal(upstream.held[3]!.getHeader("X-Path"), "/4");
  for (const response of upstream.held) response.end();
  for (const answer of await Promise.all([...first, third, fourth])) {
    assert.equal(answer.status, 200);
  }
  const again = ask(gate.port, "/6");
  await waitFor(() => upstream.held.length === 5);
  upstream.held[4]!.end();
  assert.equal((await again).status, 200, "all places were returned");
});

test("a request that waits too long gets 504", async () => {
  const upstream = await startHolding();
  const concurrency = { requestsMax: 1, queueMax: 1, queueTimeoutMs: 300 };
  const gate = await startWith([{ targets: [upstream.url], steps: { concurrency } }]);
  const first = ask(gate.port, "/1");
  await waitFor(() => upstream.held.length === 1);
  const late = await ask(gate.port, "/2");
  assert.deepEqual([late.status, readCode(late)], [504, "queue_timeout"]);
  assert.equal(late.headers["retry-after"], "1");
  upstream.held[0]!.end();
  assert.equal((await first).status, 200);
});

test("a waiting client that leaves gives its place in the queue up", async () => {
  const upstream = await startHolding();
  const concurrency = { requestsMax: 1, queueMax: 1, queueTimeoutMs: 20_000 };
  const gate = await startWith([{ targets: [upstream.url], steps: { concurrency } }]);
  const first = ask(gate.port, "/1");
  await waitFor(() => upstream.held.length === 1);
  const socket = connect(gate.port, "127.0.0.1");
  socket.write("GET /gone HTTP/1.1\r\nHost: x\r\n\r\n");
  await waitFor(() => gate.metrics.readCounter("queued") === 1);
  socket.destroy();
  await once(socket, "close");
  // Refused until the gateway has noticed; then this request waits instead of the one that left.
  const isQueued = (): boolean => gate.metrics.readCounter("queued") === 2;
  const next = (async () => {
    for (;;) {
      const answer = await ask(gate.port, "/next");
      if (answer.status !== 503) return answer;
    }
  })();
  await waitFor(isQueued);
  upstream.held[0]!.end();
  assert.equal((await first).status, 200);
  await waitFor(() => upstream.held.length === 2);
  assert.equal(upstream.held[1]!.getHeader("X-Path"), "/next");
  upstream.held[1]!.end();
  assert.equal((await next).status, 200);
});

test("places are shared by workers, in order of arrival at the gateway", async () => {
  const upstream = await startHolding();
  const shared = allocateSharedBuffers(2);
  const planner = new TestPlanner();
  const spec: TestRoute = {
    targets: [upstream.url],
    slot: 4,
    steps: { concurrency: { requestsMax: 1, queueMax: 5, queueTimeoutMs: 20_000 } },
  };
  const gates = [0, 1].map((index) => new GateWorker(shared, index, planner, 0));
  for (const gate of gates) {
    stops.push(() => gate.stop());
    assert.equal((await gate.apply({ routes: [spec], globals: GLOBALS })).type, "applied");
  }
  const answers: Promise<TestAnswer>[] = [ask(gates[0]!.port, "/0")];
  await waitFor(() => upstream.held.length === 1);
  for (const [index, worker] of [1, 0, 1].entries()) {
    const queued = gates[worker]!.metrics.readCounter("queued");
    answers.push(ask(gates[worker]!.port, `/${index + 1}`));
    await waitFor(() => gates[worker]!.metrics.readCounter("queued") === queued + 1);
  }
  for (let turn = 0; turn < 4; turn++) {
    await waitFor(() => upstream.held.length === turn + 1);
    assert.equal(upstream.held[turn]!.getHeader("X-Path"), `/${turn}`);
    upstream.held[turn]!.end();
  }
  await Promise.all(answers);
});
