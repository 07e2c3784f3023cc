// Copies of an index in use: their snapshot does not let its log grow without a bound.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { copyPages } from "../../src/index/copy-pages.ts";
import { restartLog } from "../../src/index/restart-log.ts";
import { findRestartBytes, INDEX_BUSY_MS, openIndexWriter } from "../../src/index/schema.ts";

const LOG_BYTES_MAX = 1024 ** 2;
/** A copy takes several steps. */
const INDEX_BYTES = 48 * 1024 ** 2;

/** An index with a writer that, while it is busy, commits in each turn of the event loop and restarts its log as storage does. */
function makeIndex(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "copy-pages-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "index.sqlite");
  const { database } = openIndexWriter(path, LOG_BYTES_MAX);
  t.after(() => database.close());
  database.exec("create table filler (bytes blob)");
  const insert = database.prepare("insert into filler values (zeroblob(?))");
  insert.run(INDEX_BYTES);
  database.exec("pragma wal_checkpoint(truncate)");
  const sizes: number[] = [];
  let isBusy = false;
  const commit = (): void => {
    if (!isBusy) return;
    insert.run(100_000);
    const { size } = statSync(`${path}-wal`);
    sizes.push(size);
    if (size > findRestartBytes(LOG_BYTES_MAX)) restartLog(database, INDEX_BUSY_MS);
    setTimeout(commit);
  };
  return {
    path,
    to: join(folder, "copy.sqlite"),
    sizes,
    write: (busy: boolean) => {
      isBusy = busy;
      commit();
    },
  };
}

test("a copy beside a busy writer ends when the log reaches its limit, and is complete in a calm", async (t) => {
  const index = makeIndex(t);
  const copy = { from: index.path, to: index.to, logBytesMax: LOG_BYTES_MAX };
  index.write(true);
  await assert.rejects(copyPages(copy), /changes faster than it can be copied/);
  index.write(false);
  assert.ok(index.sizes.length > 5);
  assert.ok(Math.max(...index.sizes) < 4 * LOG_BYTES_MAX, `${Math.max(...index.sizes)}`);
  await copyPages(copy);
  const copied = new DatabaseSync(index.to, { readOnly: true });
  const { rows } = copied.prepare("select count(*) as rows from filler").get() as { rows: number };
  assert.equal(rows, index.sizes.length + 1);
  assert.equal(copied.prepare("pragma integrity_check").get()?.["integrity_check"], "ok");
  assert.equal(copied.prepare("pragma journal_mode").get()?.["journal_mode"], "delete");
  copied.close();
});
