// The version of a package.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { readPackageVersion } from "@platform/kernel/config";

test("the nearest package.json above a module determines its version", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "version-"));
  t.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "inner", "src"), { recursive: true });
  writeFileSync(join(folder, "package.json"), `{ "version": "1.2.3" }`);
  const moduleUrl = pathToFileURL(join(folder, "inner", "src", "main.ts")).href;
  assert.equal(readPackageVersion(moduleUrl), "1.2.3");
  writeFileSync(join(folder, "inner", "package.json"), `{ "version": "4.0.0-rc.1" }`);
  assert.equal(readPackageVersion(moduleUrl), "4.0.0-rc.1");
});

test("a module outside any package is an error that contains its URL", () => {
  assert.throws(
    () => readPackageVersion("file:///main.ts"),
    /no package\.json above file:\/\/\/main\.ts/,
  );
});
