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
    "../node_modules/.bin/platform",
    "the PATH of npm is not the user's",
  );
  writeFileSync(join(root, "project/platform"), "");
  assert.equal(name(join(root, "project")), "./platform", "the script of a project");
  assert.equal(name(join(root, "project/src")), "../platform");
  assert.equal(name(repository), "./platform", "the script of the clone");
  assert.equal(name(join(repository, "docs")), "../platform");
  assert.equal(
    nameProgram("platform-gate", { folder: repository, path: "" }),
    "node bin/platform-gate.js",
    "a program of the clone without a script",
  );
  writeFileSync(join(root, "platform"), "");
  const runtime = join(root, "runtime");
  mkdirSync(runtime);
  writeFileSync(join(runtime, "node"), "");
  assert.equal(
    name(root, runtime),
    `node ${quoteShell(join(repository, "bin/platform.js"))}`,
    "a file of that name is not the platform's",
  );
  assert.equal(
    name(root, "/nowhere"),
    quoteShell(join(repository, "platform")),
    "a release has a Node of its own",
  );
  assert.equal(
    nameProgram("another", { folder: root, path: "" }),
    "another",
    "not of this installation",
  );
});
