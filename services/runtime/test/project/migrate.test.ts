// Migrations of a project by the command line.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { runPlatform } from "../fixture/run-process.ts";

const root = mkdtempSync(join(tmpdir(), "migrate-"));
after(() => rmSync(root, { recursive: true }));

test("migrate creates, shows and applies migrations", () => {
  runPlatform(root, "init", "notes");
  const folder = join(root, "notes");
  assert.equal(runPlatform(folder, "migrate", "up").text, "notes  0001-notes  applied\n");
  const made = runPlatform(folder, "migrate", "new", "add-tags");
  assert.equal(made.text, "Created migrations/0002-add-tags.sql.\n");
  writeFileSync(join(folder, "migrations/0002-add-tags.sql"), "alter table notes add tag text;");
  const status = runPlatform(folder, "migrate", "status").text;
  assert.equal(status, "notes  0001-notes  applied\nnotes  0002-add-tags  pending\n");
  assert.equal(runPlatform(folder, "migrate", "up").text, "notes  0002-add-tags  applied\n");
});
