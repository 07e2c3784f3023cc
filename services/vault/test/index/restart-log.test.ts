// Restarting the log of the index beside readers.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { restartLog } from "../../src/index/restart-log.ts";

test("a reader with an old snapshot delays the restart of the log, but no write", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "restart-log-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "index.sqlite");
  const writer = new DatabaseSync(path, { timeout: 10_000 });
  t.after(() => writer.close());
  writer.exec("pragma journal_mode = wal; create table rows (id integer)");
  const reader = new DatabaseSync(path, { readOnly: true });
  reader.exec("begin");
  reader.prepare("select count(*) from rows").get();
  writer.exec("insert into rows values (1)");
  const beganMs = performance.now();
  assert.equal(restartLog(writer, 10_000), false);
  assert.ok(performance.now() - beganMs < 8_000, "it waited for the reader");
  writer.exec("insert into rows values (2)");
  reader.close();
  assert.equal(restartLog(writer, 10_000), true);
  assert.equal(writer.prepare("pragma busy_timeout").get()?.["timeout"], 10_000);
});
