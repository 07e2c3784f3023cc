// Every file of a service's database × every fault: rows are whole, or the loss is told; also beside a second process.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { runFaultMatrix } from "@platform/testing/faults";
import { Database } from "../../src/database/database.ts";

const MIGRATIONS = { "0001-notes.sql": "create table notes (id integer primary key, text text)" };

function declare(dataFolder: string): Database {
  const settings = { url: undefined, dataFolder, declared: ["notes"], inMemory: false };
  return new Database("notes", { migrations: MIGRATIONS }, () => settings);
}

async function write(database: Database, round: number): Promise<void> {
  for (let number = 0; number < 100; number++)
    await database.run`insert into notes (text) values (${`${round}-${number} `.repeat(200)})`;
}

test("no fault of a file of a service's database is silent", async (t) => {
  await runFaultMatrix(t, {
    async start(folder) {
      const notes = declare(folder);
      await notes.open();
      return {
        write: (round) => write(notes, round),
        read: () => notes.all`select * from notes order by id`,
        readReports: async () => (await notes.check()) ?? "",
        stop: () => notes.close(),
      };
    },
  });
});

test("a second process shares the file, and the next start knows what both have written", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "service-shared-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [first, second] = [declare(folder), declare(folder)];
  t.after(() => Promise.all([first.close(), second.close()]));
  await write(first, 1);
  await write(second, 2);
  await write(first, 3);
  for (const database of [first, second]) {
    assert.equal((await database.one<{ n: number }>`select count(*) as n from notes`)?.n, 300);
    assert.equal(await database.check(), undefined);
  }
  // The first ends before the second, and another one comes meanwhile.
  await first.close();
  const third = declare(folder);
  await write(third, 4);
  await write(second, 5);
  await second.close();
  await write(third, 6);
  await third.close();
  const last = declare(folder);
  t.after(() => last.close());
  assert.equal((await last.one<{ n: number }>`select count(*) as n from notes`)?.n, 600);
  assert.equal(await last.check(), undefined);
});
