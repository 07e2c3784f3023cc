// Databases of versions in which projects kept them in the data folder itself.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openProjectData } from "../../src/projects/former-databases.ts";
import { makeFolder } from "@platform/testing/platform-process";

function createData(...files: string[]): string {
  const data = makeFolder();
  for (const file of files) writeFileSync(join(data, file), `content of ${file}`);
  return data;
}

test("the databases of the only project are moved once, with their transaction logs and checksums", () => {
  const companions = [".notes.sqlite.mark", "notes.sqlite-wal", "notes.sqlite.sums"];
  const data = createData("notes.sqlite", ...companions, "cache-2.sqlite", "platform.json");
  const notes = openProjectData(data, "shop", true);
  assert.equal(notes.length, 2);
  assert.match(notes[1]!, /notes\.sqlite is now .*projects\/shop\/notes\.sqlite/);
  const folder = join(data, "projects/shop");
  assert.deepEqual(readdirSync(folder).toSorted(), [
    ".notes.sqlite.mark",
    "cache-2.sqlite",
    "notes.sqlite",
    "notes.sqlite-wal",
    "notes.sqlite.sums",
  ]);
  assert.equal(
    readFileSync(join(folder, "notes.sqlite-wal"), "utf8"),
    "content of notes.sqlite-wal",
  );
  assert.deepEqual(readdirSync(data).toSorted(), ["platform.json", "projects"]);
  // A later file of this name is that of a service which runs without the platform.
  writeFileSync(join(data, "notes.sqlite"), "later");
  assert.deepEqual(openProjectData(data, "shop", true), []);
  assert.equal(readFileSync(join(folder, "notes.sqlite"), "utf8"), "content of notes.sqlite");
});

test("a move that was interrupted is completed", () => {
  const data = createData("notes.sqlite", "items.sqlite");
  mkdirSync(join(data, "projects/shop.moving"), { recursive: true });
  writeFileSync(join(data, "projects/shop.moving/notes.sqlite-wal"), "transactions");
  openProjectData(data, "shop", true);
  assert.deepEqual(readdirSync(join(data, "projects")), ["shop"]);
  assert.deepEqual(readdirSync(join(data, "projects/shop")).toSorted(), [
    "items.sqlite",
    "notes.sqlite",
    "notes.sqlite-wal",
  ]);
});

test("with several projects nothing is moved, and each start names the command for each file", () => {
  const data = createData("notes.sqlite");
  for (let round = 0; round < 2; round += 1) {
    const [note = ""] = openProjectData(data, "shop", false);
    assert.match(
      note,
      /if it is of shop, stop the platform and run: mv .*notes\.sqlite\* .*shop\/$/,
    );
  }
  assert.ok(existsSync(join(data, "notes.sqlite")));
  assert.deepEqual(readdirSync(join(data, "projects/shop")), []);
});
