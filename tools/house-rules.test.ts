// The house rules that no other tool checks. Each names the file that breaks it.
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { test } from "node:test";

test("no folder is named utils, helpers, common or misc", () => {
  const bad = globSync(
    "{packages,services,tests,tools,bench}/**/{utils,helpers,common,misc}{,.ts}",
    {
      exclude: ["**/node_modules/**"],
    },
  );
  assert.deepEqual(bad, []);
});
