// The indexes of blobs by their keys: their definition, and an index of the format before.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { checkStore } from "../../src/fsck/check-store.ts";
import { defer, makeFolder, makeStore, put, read } from "./fixture.ts";

const kek = randomBytes(32);
const keys = {
  current: () => ({ id: "00000000000000aa", key: kek }),
  find: (id: string) => (id === "00000000000000aa" ? kek : undefined),
};

test("the definition of the indexes of format 7 is the golden one", async (context) => {
  const dataDir = makeFolder(context);
  await (await makeStore(context, { dataDir })).close();
  const index = new DatabaseSync(join(dataDir, "index.sqlite"));
  const rows = index
    .prepare(
      "select sql from sqlite_schema where name in ('blobs_by_kek', 'blobs_by_head') order by name",
    )
    .all();
  index.close();
  const text = `${rows.map((row) => String(row["sql"])).join(";\n")};\n`;
  const golden = new URL("fixtures/format-7.sql", import.meta.url);
  if (process.env["WRITE_GOLDEN"] === "1") writeFileSync(golden, text);
  assert.equal(text, readFileSync(golden, "utf8"));
});

test("an index of format 6 opens, and knows the keys of its objects", async (context) => {
  const dataDir = makeFolder(context);
  const before = await makeStore(context, { dataDir, keys });
  await put(before, "small", "secret", { encryption: { type: "SSE-S3" } });
  await put(before, "large", Buffer.alloc(100_000, "s"), { encryption: { type: "SSE-S3" } });
  await put(before, "plain", "text");
  await before.close();
  const index = new DatabaseSync(join(dataDir, "index.sqlite"));
  index.exec("drop index blobs_by_kek; drop index blobs_by_head; pragma user_version = 6");
  index.close();
  assert.equal((await checkStore({ dataDir, isRepair: false })).isWhole, true);
  const store = await makeStore(context, { dataDir, keys });
  defer(context, () => store.close());
  assert.equal((await read(store, "small")).toString(), "secret");
  assert.deepEqual(store.keys.listUsed(), ["00000000000000aa"]);
  assert.deepEqual(store.keys.countUse("00000000000000aa", 100), { blobs: 2, heads: 0 });
  await store.close();
  assert.equal((await checkStore({ dataDir, isRepair: false })).isWhole, true);
});
