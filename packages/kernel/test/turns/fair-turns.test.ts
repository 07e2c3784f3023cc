// Fair turns: places, order, and the bounds of waiting.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { FairTurns, TurnRefusal } from "../../src/turns/index.ts";

const settle = (): Promise<void> => sleep(0);

function createRig(options: Partial<ConstructorParameters<typeof FairTurns>[0]> = {}) {
  const turns = new FairTurns({ places: 2, waitingMax: 4, waitMs: 60_000, ...options });
  const granted: string[] = [];
  const take = async (tenant: string, name = tenant): Promise<() => void> => {
    const release = await turns.take(tenant);
    granted.push(name);
    return release;
  };
  return { turns, granted, take };
}

test("a tenant alone has all places, and one of them as soon as another waits", async () => {
  const { granted, take } = createRig();
  const first = await take("a", "a1");
  const second = await take("a", "a2");
  const third = take("a", "a3");
  const other = take("b", "b1");
  await settle();
  assert.deepEqual(granted, ["a1", "a2"]);
  first();
  await settle();
  assert.deepEqual(granted, ["a1", "a2", "b1"], "b has waited for less time, but has no turn");
  second();
  await settle();
  assert.deepEqual(granted, ["a1", "a2", "b1", "a3"]);
  (await third)();
  (await other)();
});

test("a turn that is released twice counts once", async () => {
  const { turns, take } = createRig({ places: 1 });
  const release = await take("a");
  release();
  release();
  assert.equal(turns.taken, 0);
  await take("a");
  const waiting = take("a");
  await settle();
  assert.equal(turns.waiting, 1);
  turns.end();
  await assert.rejects(waiting, TurnRefusal);
});

test("a tenant that fills the queue makes room for others, and is refused itself", async () => {
  const { turns, take } = createRig({ places: 1, waitingMax: 3 });
  await take("a");
  const queued = [take("a"), take("a"), take("a")];
  const outcomes = Promise.allSettled(queued);
  await settle();
  await assert.rejects(take("a"), TurnRefusal);
  const other = take("b");
  await settle();
  assert.equal(turns.waiting, 3);
  const second = take("b");
  second.catch(() => undefined);
  await assert.rejects(second, TurnRefusal, "a has only two, b would have as many");
  turns.end();
  await assert.rejects(other, TurnRefusal);
  assert.ok((await outcomes).every(({ status }) => status === "rejected"));
});

test("waits end after their time, and with their signal", async () => {
  const { turns, take } = createRig({ places: 1, waitMs: 20 });
  await take("a");
  await assert.rejects(take("b"), TurnRefusal);
  const controller = new AbortController();
  const waiting = turns.take("b", controller.signal);
  controller.abort(new Error("the client has left"));
  await assert.rejects(waiting, { message: "the client has left" });
  await assert.rejects(turns.take("b", controller.signal), { message: "the client has left" });
  assert.equal(turns.waiting, 0);
});
