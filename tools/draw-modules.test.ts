// The drawn modules match the source.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

test("docs/internals/modules is up to date", () => {
  const run = spawnSync(process.execPath, ["tools/draw-modules.ts", "--check"]);
  assert.equal(run.status, 0, run.stderr.toString());
});
