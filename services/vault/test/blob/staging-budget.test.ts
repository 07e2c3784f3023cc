// The memory of incoming bodies between tenants, large and small bodies, and slow and fast clients.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  SMALL_BYTES_MAX,
  StagingBudget,
  type MemoryHolder,
} from "../../src/blob/staging-budget.ts";

const MIB = 1024 * 1024;
/** Of it, 1 MiB is for small bodies, and a tenant that holds more than 2 MiB leaves as much to others. */
const BYTES_MAX = 8 * MIB;

interface Body extends MemoryHolder {
  canYield: boolean;
  yields: number;
}

function makeBody(tenant: string): Body {
  return {
    tenant,
    heldBytes: 0,
    progressBytes: 0,
    canYield: true,
    yields: 0,
    yieldMemory() {
      this.yields += 1;
      return this.canYield;
    },
  };
}

/** Takes large bodies of a tenant as long as there is room; returns them. */
function fill(budget: StagingBudget, tenant: string): Body[] {
  const bodies: Body[] = [];
  for (let body = makeBody(tenant); budget.tryTake(body, MIB); body = makeBody(tenant)) {
    bodies.push(body);
  }
  return bodies;
}

/** True if the promise is settled once the microtasks that are due have run. */
async function isSettled(promise: Promise<unknown> | undefined): Promise<boolean> {
  let settled = false;
  void promise?.then(() => (settled = true));
  await new Promise((resolve) => setImmediate(resolve));
  return settled;
}

test("a tenant that takes all it can leaves others their share, of large and of small bodies", () => {
  const budget = new StagingBudget(BYTES_MAX, 10);
  assert.equal(fill(budget, "greedy").length, 5);
  assert.equal(fill(budget, "other").length, 2);
  assert.equal(budget.tryTake(makeBody("third"), MIB), false);
  const countSmall = (tenant: string): number => {
    let count = 0;
    while (budget.tryTake(makeBody(tenant), SMALL_BYTES_MAX)) count += 1;
    return count;
  };
  assert.equal(countSmall("greedy"), 8);
  assert.equal(countSmall("third"), 8);
  assert.equal(budget.taken, BYTES_MAX);
});

test(
  "of the waiting tenants, the one with the least memory is served first",
  { timeout: 30_000 },
  async () => {
    const budget = new StagingBudget(BYTES_MAX, 10);
    const [first] = fill(budget, "greedy");
    fill(budget, "other");
    const own = budget.take(makeBody("greedy"), MIB);
    const late = makeBody("third");
    const other = budget.take(late, MIB);
    assert.equal(budget.waiting, 2);
    budget.give(first!, MIB);
    assert.equal(await other, true);
    assert.equal(late.heldBytes, MIB);
    assert.equal(await isSettled(own), false);
    assert.equal(budget.waiting, 1);
  },
);

test("a tenant may use half of the queue", () => {
  const budget = new StagingBudget(BYTES_MAX, 4);
  fill(budget, "greedy");
  fill(budget, "other");
  for (const tenant of ["greedy", "third"]) {
    for (let count = 0; count < 2; count += 1) void budget.take(makeBody(tenant), MIB);
    assert.throws(() => budget.take(makeBody(tenant), MIB), { code: "SlowDown" });
  }
  assert.throws(() => budget.take(makeBody("fourth"), MIB), { code: "SlowDown" });
});

test("while a body waits, slow ones release as much memory as is needed, the slowest first", (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const budget = new StagingBudget(BYTES_MAX, 10);
  const bodies = [...fill(budget, "greedy"), ...fill(budget, "other")];
  const [fast, slow, busy, stopped] = bodies;
  busy!.canYield = false;
  t.mock.timers.tick(10_000);
  void budget.take(makeBody("third"), MIB);
  for (const body of bodies) body.progressBytes = 500_000;
  slow!.progressBytes = 1_000;
  busy!.progressBytes = 0;
  stopped!.progressBytes = 10;
  t.mock.timers.tick(249);
  assert.ok(bodies.every(({ yields }) => yields === 0));
  t.mock.timers.tick(1);
  assert.deepEqual(
    [fast!, slow!, busy!, stopped!].map(({ yields }) => yields),
    [0, 0, 1, 1],
  );
});

test("a body that ends while it waits leaves the queue", async () => {
  const budget = new StagingBudget(BYTES_MAX, 10);
  const held = [...fill(budget, "greedy"), ...fill(budget, "other")];
  const gone = makeBody("third");
  const waiting = budget.take(gone, MIB);
  budget.forget(gone);
  assert.equal(await waiting, false);
  assert.equal(budget.waiting, 0);
  for (const body of held) budget.give(body, MIB);
  assert.equal(budget.taken, 0);
});
