// The guides show both writings of a service file; the plain one is made from the other.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";

test("the plain blocks of the guides are those that platform convert writes", () => {
  const run = spawnSync(process.execPath, ["tools/write-plain-blocks.ts", "--check"]);
  assert.equal(run.status, 0, run.stderr.toString());
  const page = readFileSync("docs/guide/project.md", "utf8");
  assert.match(page, /```ts plain\nimport \{ route \} from "@platform\/service";/);
});
