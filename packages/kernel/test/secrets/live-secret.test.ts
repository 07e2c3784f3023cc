// Secrets that are replaced while a program runs.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ACCEPTED_VARIABLE,
  LiveSecrets,
  readSecretStates,
  replaceInEnvironment,
  toLiveSecret,
  type SecretState,
} from "../../src/secrets/index.ts";

const NAME = "A_TOKEN";
const replaced = (endsAt: number): SecretState => ({
  name: NAME,
  value: "new",
  accepted: [{ value: "new" }, { value: "old", ends_at: endsAt }],
});

test("a replaced secret presents the new value, and accepts the old one until its end", async () => {
  let now = 1_000;
  const secrets = new LiveSecrets([], () => now);
  const secret = secrets.follow(NAME, "old");
  assert.deepEqual(
    [secret.value, secret.accepts("old"), secret.accepts("new")],
    ["old", true, false],
  );

  // Before anybody presents it.
  await secrets.replace([
    { name: NAME, value: "old", accepted: [{ value: "old" }, { value: "new" }] },
  ]);
  assert.deepEqual(
    [secret.value, secret.accepts("old"), secret.accepts("new")],
    ["old", true, true],
  );

  await secrets.replace([replaced(2_000)]);
  assert.deepEqual(secret.list(), ["new", "old"]);
  now = 2_000;
  assert.deepEqual([secret.accepts("old"), secret.accepts("new")], [false, true]);
  assert.deepEqual(secret.list(), ["new"]);
});

test("a part that starts later, and a process that starts later, have the same values", async () => {
  const secrets = new LiveSecrets([], () => 0);
  await secrets.replace([replaced(10)]);
  assert.equal(secrets.follow(NAME, "old").value, "new");

  const env = { [ACCEPTED_VARIABLE]: JSON.stringify([replaced(10)]) };
  const started = new LiveSecrets(readSecretStates(env), () => 0).follow(NAME, "new");
  assert.deepEqual(started.list(), ["new", "old"]);
});

test("a setting of the operator that takes the place of a secret is not replaced", async () => {
  const secrets = new LiveSecrets([], () => 0);
  const own = secrets.follow(NAME, "mine");
  const other = secrets.follow("B_TOKEN", "old");
  await secrets.replace([replaced(10)]);
  assert.deepEqual(own.list(), ["mine"]);
  assert.deepEqual(other.list(), ["old"]);
});

test("a replacement has succeeded when all parts have followed", async () => {
  const secrets = new LiveSecrets([]);
  const seen: string[] = [];
  const secret = secrets.follow(NAME, "old");
  secret.onReplaced(async () => {
    await Promise.resolve();
    seen.push(secret.value);
  });
  await secrets.replace([replaced(Infinity)]);
  assert.deepEqual(seen, ["new"]);
  secret.onReplaced(() => Promise.reject(new Error("cannot store it")));
  await assert.rejects(secrets.replace([replaced(Infinity)]), /cannot store it/);
});

test("variables with a former value get the present one; a list that is not readable is none", () => {
  const env: Record<string, string | undefined> = { A: "old", B: "other", C: "new" };
  replaceInEnvironment(env, [replaced(10)]);
  assert.deepEqual(env, { A: "new", B: "other", C: "new" });
  for (const text of ["", "[", "{}", '[{"name":1}]']) {
    assert.deepEqual(readSecretStates({ [ACCEPTED_VARIABLE]: text }), []);
  }
});

test("text is a secret that is never replaced", () => {
  const secret = toLiveSecret("old");
  assert.deepEqual(
    [secret.accepts("old"), secret.accepts("new"), secret.value],
    [true, false, "old"],
  );
});
