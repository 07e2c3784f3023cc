// Load balancing strategies.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import fc from "fast-check";
import {
  ActiveCounts,
  allocateSharedBuffers,
  SharedRouteState,
  SharedTargetState,
  type BalancerKind,
  type TargetSpec,
} from "../../src/shared-state/index.ts";
import { createBalancer, type Balancer } from "../../src/upstream/balancer.ts";
import { layOutTurns, TURNS_MAX } from "../../src/upstream/schedule.ts";
import { TargetHealth } from "../../src/upstream/target-health.ts";

let nowMs = 0;
let chance = 0;
let active: ActiveCounts;
let health: TargetHealth;
let routes: SharedRouteState;

beforeEach(() => {
  const buffers = allocateSharedBuffers(2);
  nowMs = 1_000;
  chance = 0;
  active = new ActiveCounts(buffers);
  routes = new SharedRouteState(buffers.routes);
  health = new TargetHealth(new SharedTargetState(buffers.targets), () => nowMs);
});

function balance(kind: BalancerKind, weights: number[]): Balancer {
  const targets: TargetSpec[] = weights.map((weight, slot) => ({
    url: `http://t${slot}`,
    weight,
    slot,
    link: slot,
  }));
  return createBalancer(kind, targets, 0, {
    routeState: routes,
    active,
    health,
    random: () => chance,
  });
}

function pickMany(balancer: Balancer, times: number, clientIp = ""): number[] {
  return Array.from({ length: times }, () => balancer.pick([], clientIp));
}

function count(picks: number[], index: number): number {
  return picks.filter((pick) => pick === index).length;
}

test("round robin distributes requests by weight, evenly spread", () => {
  assert.deepEqual(pickMany(balance("round_robin", [1, 1, 1]), 6), [0, 1, 2, 0, 1, 2]);
  assert.deepEqual([...layOutTurns([5, 1, 1])], [0, 0, 1, 0, 2, 0, 0]);
  const picks = pickMany(balance("round_robin", [90, 10, 0]), 100);
  assert.deepEqual([count(picks, 0), count(picks, 1), count(picks, 2)], [90, 10, 0]);
});

test("two workers share one round", () => {
  const [one, other] = [balance("round_robin", [1, 1]), balance("round_robin", [1, 1])];
  assert.deepEqual([one.pick([], ""), other.pick([], ""), one.pick([], "")], [0, 1, 0]);
});

test("a schedule of any weights is bounded and contains every weighted target in proportion", () => {
  const weights = fc.array(fc.nat(1_000_000), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(weights, (all) => {
      fc.pre(all.some((weight) => weight > 0));
      const turns = layOutTurns(all);
      assert.ok(turns.length <= TURNS_MAX);
      const total = all.reduce((sum, weight) => sum + weight, 0);
      for (const [index, weight] of all.entries()) {
        const share = turns.filter((turn) => turn === index).length / turns.length;
        if (weight === 0) assert.equal(share, 0);
        else
          assert.ok(
            share > 0 && Math.abs(share - weight / total) < 0.02,
            `${share} ${weight / total}`,
          );
      }
    }),
    { numRuns: 30 },
  );
});

test("least_conn picks the target with the fewest active requests for its weight, across workers", () => {
  const balancer = balance("least_conn", [1, 1, 2]);
  active.add(0, 0, 1);
  active.add(1, 1, 1);
  active.add(1, 2, 1);
  assert.equal(balancer.pick([], ""), 2);
  active.add(0, 2, 1);
  active.add(0, 2, 1);
  active.add(1, 1, -1);
  assert.equal(balancer.pick([], ""), 1);
});

test("random follows its random source and the weights", () => {
  const balancer = balance("random", [3, 1]);
  const picks = Array.from({ length: 100 }, (_, step) => {
    chance = step / 100;
    return balancer.pick([], "");
  });
  assert.equal(count(picks, 1), 25);
});

test("ip_hash keeps a client at its target, and moves only the clients of removed targets", () => {
  const balancer = balance("ip_hash", [1, 1, 1, 1]);
  const clients = Array.from({ length: 400 }, (_, at) => `10.0.${at >> 8}.${at & 255}`);
  const before = clients.map((client) => balancer.pick([], client));
  for (let index = 0; index < 4; index++) assert.ok(count(before, index) > 60, "spread");
  assert.deepEqual(
    clients.map((client) => balancer.pick([], client)),
    before,
  );
  health.noteFailure(2, true);
  for (const [at, client] of clients.entries()) {
    const now = balancer.pick([], client);
    if (before[at] === 2) assert.notEqual(now, 2);
    else assert.equal(now, before[at]);
  }
});

test("an ejected target gets no requests until the ejection ends, then slowly more", () => {
  const balancer = balance("round_robin", [1, 1]);
  health.noteFailure(0, true);
  assert.equal(count(pickMany(balancer, 10), 0), 0);
  nowMs += 1_100;
  chance = 0.5;
  assert.equal(count(pickMany(balancer, 10), 0), 0, "starts below half of its share");
  chance = 0.05;
  assert.equal(count(pickMany(balancer, 10), 0), 5, "but with something");
  chance = 0.99;
  nowMs += 10_000;
  assert.equal(count(pickMany(balancer, 10), 0), 5);
});

test("at most half of the targets are ejected", () => {
  const balancer = balance("round_robin", [1, 1, 1, 1]);
  for (const slot of [0, 1, 2]) health.noteFailure(slot, true);
  const picks = pickMany(balancer, 40);
  assert.deepEqual([count(picks, 0), count(picks, 1)], [0, 0]);
  assert.ok(count(picks, 2) >= 10 && count(picks, 3) >= 10);
  const single = balance("round_robin", [1]);
  assert.equal(single.pick([], ""), 0);
  health.noteFailure(3, true);
  assert.ok(new Set(pickMany(balancer, 40)).size === 2);
});

test("a retry goes to another target, preferably a healthy one", () => {
  const balancer = balance("round_robin", [1, 1, 1, 1]);
  for (const slot of [0, 1, 2]) health.noteFailure(slot, true);
  assert.equal(balancer.pick([2], ""), 3);
  assert.notEqual(balancer.pick([2, 3], ""), -1);
  assert.equal(balancer.pick([0, 1, 2, 3], ""), -1);
  assert.equal(balance("round_robin", [1]).pick([0], ""), -1);
  assert.equal(balance("round_robin", [1, 0]).pick([0], ""), -1);
});

test("all strategies pick only allowed targets, whatever fails", () => {
  const kinds = fc.constantFrom<BalancerKind[]>("round_robin", "least_conn", "random", "ip_hash");
  const scenario = fc.record({
    kind: kinds,
    weights: fc.array(fc.nat(5), { minLength: 2, maxLength: 6 }),
    failed: fc.array(fc.nat(5), { maxLength: 10 }),
    tried: fc.uniqueArray(fc.nat(5), { maxLength: 5 }),
    chance: fc.double({ min: 0, max: 0.999, noNaN: true }),
  });
  fc.assert(
    fc.property(scenario, (given) => {
      fc.pre(given.weights.some((weight) => weight > 0));
      chance = given.chance;
      const balancer = balance(given.kind, given.weights);
      for (const slot of given.failed) health.noteFailure(slot, true);
      nowMs += 300;
      const tried = given.tried.filter((index) => index < given.weights.length);
      const picked = balancer.pick(tried, "192.0.2.1");
      const left = given.weights.flatMap((weight, index) =>
        weight > 0 && !tried.includes(index) ? [index] : [],
      );
      if (left.length === 0) assert.equal(picked, -1);
      else assert.ok(left.includes(picked), `${picked} of ${left.join()}`);
    }),
  );
});
