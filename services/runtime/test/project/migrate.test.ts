// Migrations of a project by the command line.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
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

test("migrate new continues the style of the folder", () => {
  const name = (file: string) => {
    const folder = mkdtempSync(join(root, "style-"));
    mkdirSync(join(folder, "migrations"));
    writeFileSync(join(folder, "migrations", file), "");
    return runPlatform(folder, "migrate", "new", "add-tags").text;
  };
  assert.equal(name("041_notes.sql"), "Created migrations/042_add_tags.sql.\n");
  assert.match(
    name("20200101000000_notes.sql"),
    /^Created migrations\/20\d{12}_add_tags\.sql\.\n$/,
  );
  assert.match(name("999_notes.sql"), /there is no number of 3 digits after 999_notes/);
});
