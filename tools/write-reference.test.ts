// The generated pages are those of the source.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

test("docs/reference is what the schemas generate", () => {
  const run = spawnSync(process.execPath, ["tools/write-reference.ts", "--check"]);
  assert.equal(run.status, 0, run.stderr.toString());
});
