// Identities of replicas in their data folders.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { claimReplica } from "../../src/files/index.ts";

test("replicas on one data folder have different identities, and a successor has that of its predecessor", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "replica-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const one = claimReplica(folder, assert.ifError);
  const two = claimReplica(folder, assert.ifError);
  assert.notEqual(one.id, two.id);
  one.release();
  const successor = claimReplica(folder, assert.ifError);
  assert.equal(successor.id, one.id);
  const other = join(folder, "other");
  cpSync(join(folder, "replicas", "2.id"), join(other, "replicas", "2.id"));
  const elsewhere = claimReplica(other, assert.ifError);
  assert.notEqual(elsewhere.id, one.id, "a folder has identities of its own");
  elsewhere.release();
  two.release();
  writeFileSync(join(folder, "replicas", "2.id"), "damaged");
  const third = claimReplica(folder, assert.ifError);
  assert.ok(![one.id, two.id].includes(third.id) && third.id.length > 36);
  successor.release();
  third.release();
});

test("a data folder that cannot be written is reported, and the identity is one for this run", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "replica-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "file"), "");
  const faults: unknown[] = [];
  const claim = () => claimReplica(join(folder, "file"), (error) => faults.push(error));
  assert.notEqual(claim().id, claim().id);
  assert.deepEqual(
    faults.map((error) => (error as NodeJS.ErrnoException).code),
    ["ENOTDIR", "ENOTDIR"],
  );
});
