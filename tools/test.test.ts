// `npm test` as a process whose time is up: files that did not run are named, and the run fails.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

test("files that the time limit of the run leaves out are named and fail it", () => {
  const files = ["tools/comment-openings.test.ts", "tools/rerun.test.ts"];
  const args = ["tools/test.ts", "--minutes", "0.0000001", ...files];
  const cwd = join(import.meta.dirname, "..");
  const { status, stdout } = spawnSync(process.execPath, args, { cwd, encoding: "utf8" });
  assert.equal(status, 1, stdout);
  const [, named] = stdout.split(/^not run, the time limit of .* minutes was reached:$/m);
  for (const file of files) assert.match(named ?? "", new RegExp(`^  ${file}$`, "m"));
  assert.match(stdout, /^0 of 2 files/m);
  assert.match(stdout, /^0 passed, 2 failed, 0 skipped$/m);
});
