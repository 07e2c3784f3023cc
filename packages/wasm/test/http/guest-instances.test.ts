// Pools of instances: exclusive use, bounds, waiting.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assemble, writeGuest } from "@platform/testing/guests";
import {
  GuestInstances,
  GuestMemoryBudget,
  type HttpGuest,
  ModulePools,
  compileHttpModule,
} from "../../src/http/index.ts";
import { TestEnvironment, TestMessages } from "./stage.ts";

const module = compileHttpModule(assemble(writeGuest()));
const trapping = compileHttpModule(assemble(writeGuest({ request: "unreachable" })));
const PAGE_BYTES = 65_536;

function createPool(
  options: Partial<ConstructorParameters<typeof GuestInstances>[0]> = {},
): GuestInstances {
  const budget = new GuestMemoryBudget(1024 * PAGE_BYTES);
  return new GuestInstances({ module, environment: new TestEnvironment(), budget, ...options });
}

/** An instance that is there without waiting. */
function take(pool: GuestInstances): HttpGuest {
  const guest = pool.acquire();
  assert.ok(!(guest instanceof Promise));
  return guest;
}

test("an instance serves one request at a time, and is used again", () => {
  const pool = createPool();
  const first = take(pool);
  const second = take(pool);
  assert.notEqual(first, second);
  pool.release(first);
  assert.equal(take(pool), first);
  assert.equal(pool.size, 2);
});

test("an instance that trapped is not used again", () => {
  const pool = createPool({ module: trapping });
  const first = take(pool);
  assert.throws(() => first.handleRequest(new TestMessages()));
  pool.release(first);
  assert.equal(pool.size, 0);
  assert.notEqual(take(pool), first);
});

test("requests beyond the maximum wait in their order", async () => {
  const pool = createPool({ pools: new ModulePools(1), waitMs: 10_000 });
  const guest = take(pool);
  const order: number[] = [];
  const waiting = [1, 2, 3].map(async (number) => {
    const next = await pool.acquire();
    order.push(number);
    pool.release(next);
  });
  pool.release(guest);
  await Promise.all(waiting);
  assert.deepEqual(order, [1, 2, 3]);
  assert.equal(pool.size, 1);
});

test("a request that waits gets a new instance if the one in use trapped", async () => {
  const pool = createPool({ module: trapping, pools: new ModulePools(1), waitMs: 10_000 });
  const guest = take(pool);
  const waiting = pool.acquire();
  assert.throws(() => guest.handleRequest(new TestMessages()));
  pool.release(guest);
  assert.notEqual(await waiting, guest);
});

test("the queue and the time in it are bounded", async () => {
  const pool = createPool({ pools: new ModulePools(1), waitingMax: 1, waitMs: 20 });
  take(pool);
  const waiting = Promise.resolve(pool.acquire());
  assert.throws(() => pool.acquire(), { code: "overloaded" });
  await assert.rejects(waiting, { code: "overloaded" });
});

test("memory is shared: idle instances of other guests make room", async () => {
  const budget = new GuestMemoryBudget(2 * PAGE_BYTES);
  const idle = createPool({ budget });
  idle.release(take(idle));
  const busy = createPool({ budget, waitMs: 20 });
  const first = take(busy);
  assert.equal(budget.bytes, 2 * PAGE_BYTES);
  take(busy);
  assert.equal(idle.size, 0);
  await assert.rejects(Promise.resolve(busy.acquire()), { code: "overloaded" });
  busy.release(first);
  busy.dropIdle();
  assert.equal(budget.bytes, PAGE_BYTES);
});

test("a closed pool drops what comes back and refuses what waits", async () => {
  const budget = new GuestMemoryBudget(64 * PAGE_BYTES);
  const pool = createPool({ budget, pools: new ModulePools(1), waitMs: 10_000 });
  pool.warm();
  assert.equal(pool.size, 1);
  const guest = take(pool);
  const waiting = assert.rejects(Promise.resolve(pool.acquire()), { code: "closed" });
  pool.close();
  await waiting;
  pool.release(guest);
  assert.equal(budget.bytes, 0);
  assert.throws(() => pool.acquire(), { code: "closed" });
});

test("pools of one module share its maximum: idle instances make room, and a request that waits gets the next place", async () => {
  const budget = new GuestMemoryBudget(64 * PAGE_BYTES);
  const pools = new ModulePools(2);
  const [one, other] = [
    createPool({ budget, pools }),
    createPool({ budget, pools, waitMs: 10_000 }),
  ];
  const first = take(one);
  one.release(take(one));
  assert.equal(one.size, 2);
  const second = take(other);
  assert.deepEqual([one.size, other.size], [1, 1]);
  const waiting = other.acquire();
  assert.ok(waiting instanceof Promise);
  one.release(first);
  const third = await waiting;
  assert.deepEqual([one.size, other.size], [0, 2]);
  other.release(second);
  other.release(third);
  // Instances of a pool that is closed count until they are released.
  const last = take(other);
  other.close();
  take(one);
  assert.equal(one.size + other.size, 2);
  assert.ok(one.acquire() instanceof Promise);
  other.release(last);
  assert.equal(one.size, 2);
});

test("a request that waits for memory gets it when an instance of another module is idle", async () => {
  const budget = new GuestMemoryBudget(PAGE_BYTES);
  const [one, other] = [createPool({ budget }), createPool({ budget, waitMs: 10_000 })];
  const guest = take(one);
  const waiting = other.acquire();
  one.release(guest);
  assert.ok((await waiting) !== guest);
  assert.equal(one.size, 0);
});
