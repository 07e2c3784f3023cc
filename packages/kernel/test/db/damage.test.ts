// Damage of SQLite files: whole, reported or refused, and never another database in silence.
import assert from "node:assert/strict";
import {
  cpSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
  closeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { DatabaseSync } from "node:sqlite";
import { sql } from "kysely";
import { openDatabase, type Database } from "../../src/db/index.ts";

interface Tables {
  notes: { id: number; text: string };
}

const root = mkdtempSync(join(tmpdir(), "damage-"));
after(() => rmSync(root, { recursive: true, force: true }));
let count = 0;

const NOTES = [
  {
    id: "0001-notes",
    statements: () => ["create table notes (id integer primary key, text text not null)"],
  },
];

/** A folder with a closed database of 2 000 rows. */
async function createFolder(): Promise<string> {
  const folder = join(root, String(count++));
  const database = open(folder);
  await fill(database);
  await database.close();
  return folder;
}

function open(folder: string, sqlite: { acceptLoss?: boolean } = {}): Database<Tables> {
  return openDatabase<Tables>({ url: `sqlite:${join(folder, "a.db")}`, service: "notes", sqlite });
}

async function fill(database: Database<Tables>): Promise<void> {
  await database.migrate(NOTES);
  const rows = Array.from({ length: 2_000 }, (_, id) => ({ id, text: `note ${id} `.repeat(20) }));
  for (let at = 0; at < rows.length; at += 200)
    await database.db
      .insertInto("notes")
      .values(rows.slice(at, at + 200))
      .execute();
}

function overwrite(path: string, position: number, bytes: Buffer): void {
  const descriptor = openSync(path, "r+");
  writeSync(descriptor, bytes, 0, bytes.length, position);
  closeSync(descriptor);
}

const DAMAGES: [name: string, damage: (path: string) => void, message: RegExp][] = [
  ["missing", (path) => rmSync(path), /a\.db held data, and is missing or empty.*--accept-loss/],
  ["emptied", (path) => truncateSync(path), /a\.db held data, and is missing or empty/],
  ["truncated", (path) => truncateSync(path, 4_096 * 20), /a\.db is damaged .*restore a backup/],
  ["of another kind", (path) => writeFileSync(path, "x".repeat(9_000)), /a\.db is damaged/],
  [
    "with a changed header",
    (path) => overwrite(path, 16, Buffer.from([0x12, 0x34])),
    /a\.db is damaged/,
  ],
  [
    "with a page of zeros",
    (path) => overwrite(path, 4_096 * 8, Buffer.alloc(4_096)),
    /a\.db is damaged/,
  ],
];
for (const [name, damage, message] of DAMAGES) {
  test(`a file that is ${name} is refused, and not replaced`, async () => {
    const folder = await createFolder();
    damage(join(folder, "a.db"));
    const before = readdirSync(folder).toSorted();
    assert.throws(() => open(folder), { name: "DatabaseError", kind: "corrupt", message });
    if (name === "missing") assert.deepEqual(readdirSync(folder).toSorted(), before);
  });
}

test("one mark is enough, and accepted losses begin a new database", async () => {
  const folder = await createFolder();
  rmSync(join(folder, "a.db"));
  rmSync(join(folder, "a.db.mark"));
  assert.throws(() => open(folder), { kind: "corrupt" });
  await open(folder, { acceptLoss: true }).close();
  const database = open(folder);
  assert.deepEqual(await database.migrate(NOTES), ["0001-notes"]);
  await database.close();
});

test("a log that is removed after a crash is refused; with it, all commits are there", async () => {
  const folder = join(root, String(count++));
  const database = open(folder);
  await fill(database);
  // As after kill -9: nothing was closed.
  const crashed = `${folder}-crashed`;
  const lost = `${folder}-lost`;
  cpSync(folder, crashed, { recursive: true });
  cpSync(folder, lost, { recursive: true });
  await database.close();
  rmSync(join(lost, "a.db-wal"));
  assert.throws(() => open(lost), { kind: "corrupt", message: /a\.db-wal held the last commits/ });
  writeFileSync(join(lost, "a.db-wal"), "");
  assert.throws(() => open(lost), { kind: "corrupt" });
  const restored = open(crashed);
  const { total } = await restored.db
    .selectFrom("notes")
    .select((select) => select.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  assert.equal(total, 2_000);
  await restored.close();
  await open(crashed).close();
});

test("a database that was written by a version without marks has them after its next start", async () => {
  const folder = await createFolder();
  for (const name of ["a.db.mark", ".a.db.mark"]) rmSync(join(folder, name));
  await open(folder).close();
  rmSync(join(folder, "a.db"));
  assert.throws(() => open(folder), { kind: "corrupt" });
});

test("damage that is met while the database is used fails its health check, with file and remedy", async () => {
  const folder = await createFolder();
  const database = open(folder);
  assert.equal(await database.check(), undefined);
  // Behind the back of the open database, in pages that it has not read.
  const other = new DatabaseSync(join(folder, "a.db"));
  const { rootpage } = other
    .prepare("select rootpage from sqlite_schema where name = 'notes'")
    .get()!;
  other.close();
  const position = (Number(rootpage) - 1) * 4_096;
  overwrite(join(folder, "a.db"), position, Buffer.alloc(4_096));
  await assert.rejects(sql`select sum(length(text)) from notes`.execute(database.db));
  assert.match((await database.check()) ?? "", /a\.db is damaged .*restore a backup/);
  await database.close();
});
