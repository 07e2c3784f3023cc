// Circuit breakers, retries of statuses, outlier statuses and shifted weights, with a real worker and real upstreams.
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import {
  allocateSharedBuffers,
  Circuit,
  type CircuitBreakerSpec,
  readMonotonicMs,
  SharedLinkState,
  SharedRouteState,
} from "../../src/shared-state/index.ts";
import {
  ask,
  GateWorker,
  GLOBALS,
  startUpstream,
  TestPlanner,
  type TestAnswer,
  type TestRoute,
} from "./gate-worker.ts";

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

interface Upstream {
  url: string;
  /** Status of the next answers. */
  status: number;
  asked: number;
  stop: () => Promise<void>;
}

async function startNamed(name: string, status = 200): Promise<Upstream> {
  const state: Upstream = {
    url: "",
    status,
    asked: 0,
    stop: () => upstream.stop(),
  };
  const upstream = await startUpstream((request, response) => {
    state.asked++;
    request.resume();
    response.writeHead(state.status);
    response.end(name);
  });
  state.url = upstream.url;
  stops.push(upstream.stop);
  return state;
}

async function startWith(routes: TestRoute[]) {
  const shared = allocateSharedBuffers(1);
  const gate = new GateWorker(shared, 0, new TestPlanner(), 0);
  stops.push(() => gate.stop());
  assert.equal((await gate.apply({ routes, globals: GLOBALS })).type, "applied");
  return { gate, shared };
}

const BREAKER: CircuitBreakerSpec = {
  errorRate: 0.5,
  requestsMin: 4,
  windowSeconds: 10,
  openMs: 60_000,
  openMsMax: 600_000,
  probes: 2,
};

test("a circuit opens at the error rate, refuses with 503, probes, and closes after successes", async () => {
  const upstream = await startNamed("only");
  const { gate, shared } = await startWith([
    { prefix: "/", targets: [upstream.url], resilience: { breaker: BREAKER } },
    { prefix: "/other", targets: [upstream.url] },
  ]);
  const send = (path = "/"): Promise<TestAnswer> => ask(gate.port, path);
  const statuses: number[] = [];
  for (const status of [200, 200, 500, 500]) {
    upstream.status = status;
    statuses.push((await send()).status);
  }
  assert.deepEqual(statuses, [200, 200, 500, 500], "responses are passed on until it opens");
  const { asked } = upstream;
  const refused = await send();
  assert.equal(refused.status, 503);
  assert.equal((JSON.parse(refused.body) as { code: string }).code, "circuit_open");
  assert.equal(refused.headers["retry-after"], "1", "a trial follows in a quarter of a second");
  assert.equal(upstream.asked, asked, "the upstream is left alone");
  assert.equal((await send("/other")).status, 500, "other routes have their own circuits");
  assert.equal(gate.metrics.readCounter("circuitsOpened"), 1);

  const links = new SharedLinkState(shared.links);
  const [link] = gate.planner.linksOf("/", [upstream.url]);
  const endOpening = (): void => links.restartProbes(link!, 0);
  const firstUntilMs = links.readUntilMs(link!);
  endOpening();
  assert.equal((await send()).status, 500, "a probe");
  assert.equal((await send()).status, 503, "the failed probe opened it again");
  const laterMs = links.readUntilMs(link!) - firstUntilMs;
  // Both times are rounded up to steps of 64 ms.
  assert.ok(laterMs >= BREAKER.openMs - 64, "the second opening lasts twice as long");
  upstream.status = 200;
  endOpening();
  for (let request = 0; request < 6; request++) assert.equal((await send()).status, 200);
  assert.equal(links.describeCircuit(link!), "closed");
});

test("while all circuits of a route are open, one request in 250 ms is a trial, and its success closes", async () => {
  const one = await startNamed("one", 500);
  const two = await startNamed("two", 500);
  const { gate, shared } = await startWith([
    { prefix: "/", targets: [one.url, two.url], resilience: { breaker: BREAKER } },
  ]);
  const links = new SharedLinkState(shared.links);
  const slots = gate.planner.linksOf("/", [one.url, two.url]);
  const listStates = (): string[] => slots.map((slot) => links.describeCircuit(slot));
  const send = async (): Promise<number> => (await ask(gate.port, "/")).status;
  while (listStates().includes("closed")) assert.equal(await send(), 500);
  const asked = one.asked + two.asked;
  const readNowMs = (): number => readMonotonicMs() - shared.startedMs;
  // The interval begins now, however slow the machine is.
  const refuse = async (): Promise<void> => {
    links.delayTrial(slots[0]!, readNowMs());
    assert.equal(await send(), 503);
  };
  await refuse();
  const allowTrial = (): void => links.delayTrial(slots[0]!, readNowMs() - 250);
  allowTrial();
  assert.equal(await send(), 500, "a trial");
  await refuse();
  assert.deepEqual(listStates(), ["open", "open"], "a failed trial changes nothing");
  allowTrial();
  assert.equal(await send(), 500, "the trial of the other target");
  assert.deepEqual([one.asked + two.asked, one.asked > 0, two.asked > 0], [asked + 2, true, true]);
  one.status = 200;
  two.status = 200;
  allowTrial();
  assert.equal(await send(), 200);
  assert.equal(listStates().filter((state) => state === "closed").length, 1);
  for (let request = 0; request < 6; request++) assert.equal(await send(), 200);
});

test("a circuit that a refused connection opens lets requests through after 250 ms", async () => {
  const upstream = await startNamed("only");
  await upstream.stop();
  const { gate, shared } = await startWith([
    { prefix: "/", targets: [upstream.url], resilience: { breaker: BREAKER } },
  ]);
  const links = new SharedLinkState(shared.links);
  const [link] = gate.planner.linksOf("/", [upstream.url]);
  while (links.describeCircuit(link!) !== "open") await ask(gate.port, "/");
  const openMs = links.readUntilMs(link!) - (readMonotonicMs() - shared.startedMs);
  assert.ok(openMs <= 320, `${openMs} ms, in steps of 64 ms`);
});

test("while a circuit is open, the other targets serve", async () => {
  const bad = await startNamed("bad", 500);
  const good = await startNamed("good");
  const { gate } = await startWith([
    { targets: [bad.url, good.url], resilience: { breaker: BREAKER } },
  ]);
  for (let request = 0; request < 8; request++) await ask(gate.port, "/");
  assert.equal(bad.asked, 4);
  for (let request = 0; request < 8; request++) {
    assert.equal((await ask(gate.port, "/")).body, "good");
  }
  assert.equal(bad.asked, 4);
});

test("a refused connection counts as a failure of its circuit", async () => {
  const { gate } = await startWith([
    { targets: ["http://127.0.0.1:1"], resilience: { breaker: BREAKER } },
  ]);
  const statuses: number[] = [];
  for (let request = 0; request < 5; request++) statuses.push((await ask(gate.port, "/")).status);
  assert.deepEqual(statuses, [502, 502, 502, 502, 503]);
});

test("listed statuses of idempotent requests are retried elsewhere; the last response is passed on", async () => {
  const bad = await startNamed("bad", 503);
  const good = await startNamed("good");
  const retry = { attemptsMax: 2, statuses: [503], onTimeout: false };
  const { gate } = await startWith([
    { prefix: "/two", targets: [bad.url, good.url], resilience: { retry } },
    { prefix: "/one", targets: [bad.url], resilience: { retry } },
    { prefix: "/none", targets: [bad.url], resilience: { retry: { ...retry, attemptsMax: 0 } } },
  ]);
  for (let request = 0; request < 4; request++) {
    const { status, body } = await ask(gate.port, "/two", { method: "PUT", body: "x".repeat(999) });
    assert.deepEqual([status, body], [200, "good"]);
  }
  bad.asked = 0;
  const posted = await Promise.all(
    [1, 2].map(() => ask(gate.port, "/two", { method: "POST", body: "x" })),
  );
  assert.ok(
    posted.some(({ status }) => status === 503),
    "a POST is never sent twice",
  );
  bad.asked = 0;
  const last = await ask(gate.port, "/one");
  assert.deepEqual([last.status, last.body, bad.asked], [503, "bad", 3]);
  bad.asked = 0;
  assert.equal((await ask(gate.port, "/none")).status, 503);
  assert.equal(bad.asked, 1);
});

test("retries that the budget refuses use up no probe of another target", async () => {
  const bad = await startNamed("bad", 503);
  const good = await startNamed("good");
  const retry = { attemptsMax: 10, statuses: [503], onTimeout: false };
  const { gate, shared } = await startWith([
    { prefix: "/drain", targets: [bad.url], resilience: { retry } },
    {
      prefix: "/two",
      targets: [bad.url, good.url],
      resilience: { retry, breaker: { ...BREAKER, requestsMin: 100 } },
    },
  ]);
  while (gate.metrics.readCounter("retriesRefused") === 0) await ask(gate.port, "/drain");
  const links = new SharedLinkState(shared.links);
  const [, link] = gate.planner.linksOf("/two", [bad.url, good.url]);
  links.changeCircuit(link!, Circuit.Closed, Circuit.HalfOpen, 2 ** 30);
  for (let request = 0; request < 4; request++) await ask(gate.port, "/two");
  assert.equal(links.describeCircuit(link!), "closed", "both probes were requests");
});

test("outlier statuses eject a target like failed connections", async () => {
  const bad = await startNamed("bad", 502);
  const good = await startNamed("good");
  const { gate } = await startWith([
    { targets: [bad.url, good.url], resilience: { outlierStatuses: [502] } },
  ]);
  for (let request = 0; request < 6; request++) await ask(gate.port, "/");
  assert.equal(bad.asked, 3);
  assert.equal(gate.metrics.readCounter("ejections"), 1);
  assert.equal((await ask(gate.port, "/")).body, "good");
});

test("effective weights replace the configured ones without a change of the route", async () => {
  const stable = await startNamed("stable");
  const canary = await startNamed("canary", 500);
  const { gate, shared } = await startWith([
    {
      slot: 7,
      targets: [
        { url: stable.url, weight: 50 },
        { url: canary.url, weight: 50 },
      ],
      steps: { sticky: { cookie: "seat", isSecure: false } },
      resilience: { canary: { stepPoints: 10, stepMs: 1_000, errorRateMax: 0.1 } },
    },
  ]);
  const send = (cookie = ""): Promise<TestAnswer> =>
    ask(gate.port, "/", { headers: cookie === "" ? {} : { Cookie: cookie } });
  const links = new SharedLinkState(shared.links);
  const slots = gate.planner.linksOf("/", [stable.url, canary.url]);
  let canaryCookie = "";
  for (let request = 0; request < 10; request++) {
    const { body, headers } = await send();
    if (body === "canary") canaryCookie = headers["set-cookie"]![0]!.split(";")[0]!;
  }
  assert.deepEqual(links.readCanary(slots[1]!), { requests: 5, failures: 5 });
  links.setWeight(slots[0]!, 100);
  links.setWeight(slots[1]!, 0);
  new SharedRouteState(shared.routes).changeWeights(7);
  for (let request = 0; request < 10; request++) {
    assert.equal((await send(canaryCookie)).body, "stable", "its own clients leave it as well");
  }
});

test("a retried outlier counts against the health of its target", async () => {
  const bad = await startNamed("bad", 503);
  const good = await startNamed("good");
  const retry = { attemptsMax: 2, statuses: [503], onTimeout: false };
  const { gate } = await startWith([
    { targets: [bad.url, good.url], resilience: { retry, outlierStatuses: [503] } },
  ]);
  for (let request = 0; request < 8; request++) {
    assert.equal((await ask(gate.port, "/")).body, "good");
  }
  assert.equal(bad.asked, 3);
  assert.equal(gate.metrics.readCounter("ejections"), 1);
});

test("a cookie keeps a client at its target, until that target fails", async () => {
  const names = ["one", "two", "three"];
  const upstreams = await Promise.all(names.map((name) => startNamed(name)));
  const { gate } = await startWith([
    {
      prefix: "/shop",
      targets: upstreams.map(({ url }) => url),
      steps: { sticky: { cookie: "seat", maxAgeSeconds: 60, isSecure: true } },
    },
  ]);
  const send = (cookie: string): Promise<TestAnswer> =>
    ask(gate.port, "/shop/1", { headers: cookie === "" ? {} : { Cookie: `a=b; ${cookie}` } });
  const first = await send("");
  const [set = ""] = first.headers["set-cookie"] ?? [];
  assert.match(set, /^seat=[0-9a-f]{16}; Path=\/shop; Max-Age=60; HttpOnly; SameSite=Lax; Secure$/);
  const cookie = set.split(";")[0]!;
  for (let request = 0; request < 6; request++) {
    const answer = await send(cookie);
    assert.equal(answer.body, first.body);
    assert.equal(answer.headers["set-cookie"], undefined);
  }
  const seen = new Set<string>();
  for (let request = 0; request < 6; request++) seen.add((await send("seat=unknown")).body);
  assert.deepEqual([...seen].sort(), [...names].sort(), "an unknown cookie is balanced");
  await upstreams[names.indexOf(first.body)]!.stop();
  const moved = await send(cookie);
  assert.notEqual(moved.body, first.body);
  const [next = ""] = moved.headers["set-cookie"] ?? [];
  assert.equal((await send(next.split(";")[0]!)).body, moved.body);
});
