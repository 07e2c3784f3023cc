// The tables of jobs and tasks: their definition, and an index of the format before.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { checkStore } from "../../src/fsck/check-store.ts";
import { makeTables } from "../../src/index/schema.ts";
import { openStore } from "../../src/open-store.ts";
import { defer, makeFolder, makeStore } from "./fixture.ts";

test("the definition of the tables of format 5 is the golden one", async (context) => {
  const dataDir = makeFolder(context);
  await (await makeStore(context, { dataDir })).close();
  const index = new DatabaseSync(join(dataDir, "index.sqlite"));
  const rows = index
    .prepare(
      "select sql from sqlite_schema where tbl_name in ('tasks', 'jobs', 'job_lines', 'trigger_runs') and sql is not null order by name",
    )
    .all();
  index.close();
  const text = `${rows.map((row) => String(row["sql"])).join(";\n")};\n`;
  const golden = new URL("fixtures/format-5.sql", import.meta.url);
  if (process.env["WRITE_GOLDEN"] === "1") writeFileSync(golden, text);
  assert.equal(text, readFileSync(golden, "utf8"));
});

test("the definition of the tables of format 6 is the golden one", async (context) => {
  const dataDir = makeFolder(context);
  await (await makeStore(context, { dataDir })).close();
  const index = new DatabaseSync(join(dataDir, "index.sqlite"));
  const rows = index
    .prepare(
      "select sql from sqlite_schema where tbl_name in ('facts', 'remotes', 'remote_blobs') and sql is not null order by name",
    )
    .all();
  index.close();
  const text = `${rows.map((row) => String(row["sql"])).join(";\n")};\n`;
  const golden = new URL("fixtures/format-6.sql", import.meta.url);
  if (process.env["WRITE_GOLDEN"] === "1") writeFileSync(golden, text);
  assert.equal(text, readFileSync(golden, "utf8"));
});

test("an index of format 4 opens, and its tasks run", async (context) => {
  const dataDir = makeFolder(context);
  const path = join(dataDir, "index.sqlite");
  const index = new DatabaseSync(path);
  index.exec("pragma page_size = 8192; pragma journal_mode = wal");
  makeTables(index, 0, 4);
  // Of a bucket that has gone: it ends without an effect.
  index.exec(
    "insert into tasks (kind, rule, bucket, key, version, seq, due, attempts, state) values ('embed', '', 7, x'61', 'null', 1, 0, 0, 'waiting')",
  );
  index.exec("pragma user_version = 4");
  index.close();
  const store = await openStore({ dataDir, reserveBytes: 0 });
  defer(context, () => store.close());
  await waitFor(async () => (await store.tasks.count()).length === 0, "the end of the task");
  assert.equal(store.tasks.readAttempts("embed").ended, 1);
  await store.close();
  assert.equal((await checkStore({ dataDir, isRepair: false })).isWhole, true);
});
