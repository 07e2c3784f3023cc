// Upstreams that fail: who is asked next, how often, and who is left alone for a while.
import assert from "node:assert/strict";
import { request, Agent, type IncomingMessage } from "node:http";
import { afterEach, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { allocateSharedBuffers, SharedTargetState } from "../../src/shared-state/index.ts";
import {
  ask,
  GateWorker,
  GLOBALS,
  startGate,
  startRawUpstream,
  startUpstream,
  TestPlanner,
} from "./gate-worker.ts";

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function startNamed(
  name: string,
  port = 0,
): Promise<Awaited<ReturnType<typeof startUpstream>>> {
  const upstream = await startUpstream((_request, response) => response.end(name), port);
  stops.push(upstream.stop);
  return upstream;
}

async function startWith(...parameters: Parameters<typeof startGate>): Promise<GateWorker> {
  const gate = await startGate(...parameters);
  stops.push(() => gate.stop());
  return gate;
}

/** Accepts, reads the request, and hangs up without an answer; counts how often. */
async function startRude(): Promise<{ url: string; asked: () => number }> {
  let asked = 0;
  const rude = await startRawUpstream((socket) =>
    socket.once("data", () => {
      asked++;
      socket.destroy();
    }),
  );
  stops.push(rude.stop);
  return { url: rude.url, asked: () => asked };
}

const DEAD = "http://127.0.0.1:1";

test("a refused target is tried once, then ejected, and requests of any method move on", async () => {
  const alive = await startNamed("alive");
  const gate = await startWith([{ targets: [DEAD, alive.url] }]);
  for (const method of ["POST", "GET", "POST", "PATCH", "GET"]) {
    const answer = await ask(gate.port, "/", { method });
    assert.deepEqual([answer.status, answer.body], [200, "alive"], method);
  }
  assert.equal(gate.metrics.readUpstreamErrors(gate.planner.slotOf(DEAD)), 1);
  assert.equal(gate.metrics.readCounter("ejections"), 1);
  assert.equal(gate.metrics.readCounter("retries"), 1);
});

test("least_conn counts active requests, without those that failed or moved on", async () => {
  const alive = await startNamed("alive");
  const other = await startNamed("other");
  const rude = await startRude();
  const gate = await startWith([
    { prefix: "/moves", balancer: "least_conn", targets: [rude.url, alive.url] },
    { prefix: "/fails", balancer: "least_conn", targets: [rude.url] },
    { prefix: "/even", balancer: "least_conn", targets: [alive.url, other.url] },
  ]);
  const slots = [rude.url, alive.url, other.url].map((url) => gate.planner.slotOf(url));
  for (let round = 0; round < 4; round++) {
    assert.equal((await ask(gate.port, "/moves")).status, 200);
    assert.equal((await ask(gate.port, "/fails", { method: "POST" })).status, 502);
  }
  assert.ok(rude.asked() > 0 && gate.metrics.readCounter("retries") > 0);
  await waitFor(() => slots.every((slot) => gate.active.sum(slot) === 0));
  const names = new Map<string, number>();
  for (let round = 0; round < 20; round++) {
    const { body } = await ask(gate.port, "/even");
    names.set(body, (names.get(body) ?? 0) + 1);
  }
  // Equally busy targets take turns: a count that a retry left behind would turn them away from one.
  assert.deepEqual([names.get("alive"), names.get("other")], [10, 10]);
});

test("a request that was sent moves on only if its method is idempotent", async () => {
  const alive = await startNamed("alive");
  const rude = await startRude();
  const gate = await startWith([
    {
      prefix: "/",
      targets: [
        { url: rude.url, weight: 1_000 },
        { url: alive.url, weight: 1 },
      ],
    },
  ]);
  const post = await ask(gate.port, "/", { method: "POST", body: "x" });
  assert.equal(post.status, 502);
  assert.equal(rude.asked(), 1);
  const put = await ask(gate.port, "/", { method: "PUT", body: "x" });
  assert.deepEqual([put.status, put.body], [200, "alive"]);
  assert.equal(rude.asked(), 2);
});

test("a request is retried twice at most", async () => {
  const rudes = await Promise.all([startRude(), startRude(), startRude(), startRude()]);
  const gate = await startWith([{ targets: rudes.map((rude) => rude.url) }]);
  const answer = await ask(gate.port, "/");
  assert.equal(answer.status, 502);
  assert.equal(
    rudes.reduce((sum, rude) => sum + rude.asked(), 0),
    3,
  );
});

test("a single target that closes the connection is not retried on a new connection", async () => {
  const rude = await startRude();
  const gate = await startWith([{ targets: [rude.url] }]);
  assert.equal((await ask(gate.port, "/")).status, 502);
  assert.equal(rude.asked(), 1);
});

test("the budget limits retries of sent requests, not of unsent ones", async () => {
  const alive = await startNamed("alive");
  const [one, other] = [await startRude(), await startRude()];
  const gate = await startWith([
    { prefix: "/rude", targets: [one.url, other.url] },
    { prefix: "/dead", targets: [DEAD, alive.url] },
  ]);
  for (let round = 0; round < 10; round++) {
    await Promise.all(Array.from({ length: 15 }, () => ask(gate.port, "/rude")));
  }
  assert.equal(one.asked() + other.asked(), 150 + 100);
  assert.equal(gate.metrics.readCounter("retriesRefused"), 50);
  for (let round = 0; round < 3; round++) {
    assert.equal((await ask(gate.port, "/dead", { method: "POST" })).status, 200);
  }
});

test("a keep-alive race is retried once on a new connection, except for POST", async () => {
  let connections = 0;
  const racy = await startRawUpstream((socket) => {
    connections++;
    let requests = 0;
    socket.on("data", (bytes) => {
      requests += bytes.toString("latin1").split("\r\n\r\n").length - 1;
      // Every connection answers once, and is gone when the next request comes.
      if (requests > 1) socket.destroy();
      else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
  });
  stops.push(racy.stop);
  const gate = await startWith([{ targets: [racy.url] }]);
  assert.equal((await ask(gate.port, "/")).status, 200);
  assert.equal((await ask(gate.port, "/")).status, 200);
  assert.equal(connections, 2);
  assert.equal((await ask(gate.port, "/", { method: "POST" })).status, 502);
  assert.equal((await ask(gate.port, "/")).status, 200);
});

for (const requestsPerConnection of [1, 2, 10]) {
  test(`an upstream that closes after ${requestsPerConnection} answers unannounced costs no idempotent request`, async () => {
    const hasty = await startRawUpstream((socket) => {
      let requests = 0;
      socket.setNoDelay(true);
      socket.on("data", () => {
        const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        if (++requests < requestsPerConnection) socket.write(answer);
        else socket.end(answer);
      });
    });
    stops.push(hasty.stop);
    const gate = await startWith([{ targets: [hasty.url] }]);
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    stops.push(() => agent.destroy());
    const statuses = new Map<number, number>();
    await Promise.all(
      Array.from({ length: 16 }, async () => {
        for (let round = 0; round < 60; round++) {
          const { status } = await askWith(agent, gate.port);
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
        }
      }),
    );
    assert.deepEqual([...statuses], [[200, 16 * 60]]);
  });
}

test("POSTs to an upstream that closes after two answers reach it once each, nearly all of them", async () => {
  let received = 0;
  const hasty = await startRawUpstream((socket) => {
    let requests = 0;
    socket.on("data", () => {
      received++;
      const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
      if (++requests < 2) socket.write(answer);
      else socket.end(answer);
    });
  });
  stops.push(hasty.stop);
  const gate = await startWith([{ targets: [hasty.url] }]);
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  stops.push(() => agent.destroy());
  const counts = { ok: 0, failed: 0 };
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (let round = 0; round < 60; round++) {
        const { status } = await askWith(agent, gate.port, "POST");
        if (status === 200) counts.ok++;
        else {
          assert.equal(status, 502);
          counts.failed++;
        }
      }
    }),
  );
  // An end that is on its way when a request is sent cannot be known; one that has arrived can.
  assert.ok(counts.failed <= 0.1 * 16 * 60, `${counts.failed} failed`);
  assert.ok(received >= counts.ok && received <= 16 * 60, `${received} received`);
});

test("an upstream that restarts under load fails no idempotent request", async () => {
  const steady = await startNamed("steady");
  let flaky = await startNamed("flaky");
  const gate = await startWith([{ targets: [steady.url, flaky.url] }]);
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  stops.push(() => agent.destroy());
  const seen = new Map<string, number>();
  const run = { isOver: false };
  const load = async (): Promise<void> => {
    while (!run.isOver) {
      const answer = await askWith(agent, gate.port);
      const name = answer.status === 200 ? answer.body : String(answer.status);
      seen.set(name, (seen.get(name) ?? 0) + 1);
    }
  };
  const loads = Array.from({ length: 16 }, load);
  const { port } = flaky;
  for (let round = 0; round < 3; round++) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    await flaky.stop();
    await new Promise((resolve) => setTimeout(resolve, 300));
    flaky = await startNamed("flaky", port);
  }
  seen.delete("flaky");
  await waitFor(() => (seen.get("flaky") ?? 0) > 0, undefined, 20_000);
  run.isOver = true;
  await Promise.all(loads);
  assert.deepEqual([...seen.keys()].sort(), ["flaky", "steady"]);
  assert.ok(gate.metrics.readCounter("ejections") >= 1);
});

test("workers share the health of targets, and the totals of an ended worker are kept", async () => {
  const alive = await startNamed("alive");
  const shared = allocateSharedBuffers(2);
  const planner = new TestPlanner();
  const routes = [{ targets: [DEAD, alive.url] }];
  const one = new GateWorker(shared, 0, planner, 0);
  stops.push(() => one.stop());
  await one.apply({ routes, globals: GLOBALS });
  for (let round = 0; round < 4; round++) await ask(one.port, "/");
  const other = new GateWorker(shared, 1, planner, 0);
  stops.push(() => other.stop());
  await other.apply({ routes, globals: GLOBALS });
  const slot = planner.slotOf(DEAD);
  if (new SharedTargetState(shared.targets).readEjectedUntilMs(slot) > 0) {
    for (let round = 0; round < 4; round++) await ask(other.port, "/");
    assert.ok(other.metrics.readUpstreamErrors(slot) <= 1);
  }
  const before = one.metrics.readCounter("requests");
  await one.stop();
  assert.equal(one.metrics.readCounter("requests"), before);
  assert.equal(before, 4);
});

async function askWith(
  agent: Agent,
  port: number,
  method = "GET",
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(
      { agent, host: "127.0.0.1", port, path: "/", method },
      (answer: IncomingMessage) => {
        let body = "";
        answer.setEncoding("utf8");
        answer.on("data", (chunk: string) => (body += chunk));
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, body }));
        answer.on("error", reject);
      },
    );
    sent.on("error", reject);
    sent.end();
  });
}
