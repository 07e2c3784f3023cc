// Registrations and sign-ins share the hasher, and registrations yield.
import assert from "node:assert/strict";
import { test } from "node:test";
import { PlatformError } from "@platform/kernel/errors";
import { PasswordHasher } from "../../src/sign-in/password-hasher.ts";

const COST = { memoryCost: 1_024, timeCost: 1, parallelism: 1 };

test("sign-ins overtake waiting registrations, which proceed after every four sign-ins", async () => {
  const hasher = new PasswordHasher({
    concurrency: 1,
    waitingMax: 100,
    registrationsWaitingMax: 10,
    cost: COST,
  });
  const hashed = await hasher.hash("a password");
  // The first check creates the hash that unknown names are checked against.
  await hasher.verify(hashed, "a password");
  const order: string[] = [];
  const registrations = Array.from({ length: 11 }, () =>
    hasher.hash("a password", "registration").then(() => order.push("registration")),
  );
  await assert.rejects(hasher.hash("a password", "registration"), (error) => {
    assert.ok(error instanceof PlatformError);
    assert.equal(error.status, 503);
    return true;
  });
  const signIns = Array.from({ length: 8 }, () =>
    hasher.verify(hashed, "a password").then((isRight) => {
      assert.ok(isRight);
      order.push("sign-in");
    }),
  );
  await Promise.all([...registrations, ...signIns]);
  const expected = ["registration", ...Array.from({ length: 4 }, () => "sign-in"), "registration"];
  assert.deepEqual(order.slice(0, 6), expected);
  assert.ok(order.lastIndexOf("sign-in") < 11, order.join());
});

test("registrations use at most half of the concurrency", async () => {
  const hasher = new PasswordHasher({
    concurrency: 4,
    waitingMax: 100,
    registrationsWaitingMax: 100,
    cost: { ...COST, memoryCost: 16_384 },
  });
  const hashed = await hasher.hash("a password");
  const registrations = Array.from({ length: 80 }, () => hasher.hash("a password", "registration"));
  let isOver = false;
  const all = Promise.all(registrations).then(() => (isOver = true));
  assert.ok(await hasher.verify(hashed, "a password"));
  assert.equal(isOver, false);
  await all;
});
