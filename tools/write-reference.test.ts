// The generated pages match the source.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

test("docs/reference is up to date", () => {
  const run = spawnSync(process.execPath, ["tools/write-reference.ts", "--check"]);
  assert.equal(run.status, 0, run.stderr.toString());
});
