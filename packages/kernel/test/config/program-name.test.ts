// Programs as a user types them.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { nameProgram, quoteShell } from "@platform/kernel/config";

const root = mkdtempSync(join(tmpdir(), "program-name-"));
after(() => rmSync(root, { recursive: true }));
const repository = fileURLToPath(new URL("../../../..", import.meta.url));
const local = join(root, "project/node_modules/.bin");
mkdirSync(local, { recursive: true });
mkdirSync(join(root, "project/src"));
mkdirSync(join(root, "bin"));
for (const folder of [local, join(root, "bin")]) writeFileSync(join(folder, "platform"), "");

test("a program is named by what starts it in the working directory", () => {
  const name = (folder: string, ...path: string[]) =>
    nameProgram("platform", { folder, path: path.join(delimiter) });
  assert.equal(name(root, "/nowhere", join(root, "bin")), "platform", "in the PATH");
  assert.equal(
    name(join(root, "project/src"), local),
    "npx platform",
    "the PATH of npm is not the user's",
  );
  assert.equal(name(join(repository, "docs")), "npx platform", "the repository's own program");
  assert.equal(name(root), `node ${quoteShell(join(repository, "bin/platform.js"))}`);
  assert.equal(
    nameProgram("another", { folder: root, path: "" }),
    "another",
    "not of this installation",
  );
});
