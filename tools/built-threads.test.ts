// The choice of a thread's form in tests.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { createThreadFinder } from "./built-threads.ts";

const root = mkdtempSync(join(tmpdir(), "platform-threads-"));
after(() => rmSync(root, { recursive: true }));

test("sources of threads are replaced by those of the current build, and nothing else is", () => {
  assert.throws(() => createThreadFinder(root), /ENOENT/);
  mkdirSync(join(root, "dist/services/b2"), { recursive: true });
  writeFileSync(join(root, "dist/services/current"), "b2\n");
  writeFileSync(join(root, "dist/services/b2/vault-writer-thread.js"), "");
  const find = createThreadFinder(root);
  const urlOf = (path: string): URL => pathToFileURL(join(root, path));
  assert.deepEqual(
    find(urlOf("services/vault/src/transaction/writer-thread.ts")),
    urlOf("dist/services/b2/vault-writer-thread.js"),
  );
  for (const other of [
    "services/vault/src/index/snapshot-thread.ts",
    "services/vault/test/store/writer-thread.ts",
    "../services/vault/src/transaction/writer-thread.ts",
  ]) {
    assert.deepEqual(find(urlOf(other)), urlOf(other));
  }
  assert.equal(find("process.exit()"), "process.exit()");
});
