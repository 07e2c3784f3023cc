// Threads that read the index: started when they are needed, and again after they failed.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ReaderPool } from "../../src/query/reader-pool.ts";

test("each query is answered, also after the thread of a former one has failed", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "vault-readers-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const pool = new ReaderPool(join(folder, "missing.db"), 2, 10);
  const list = () => pool.query("listUploads", { bucket: "photos", max: 1 } as never);
  await assert.rejects(list(), /The index cannot be read/);
  await assert.rejects(list(), /The index cannot be read/);
  await Promise.all([list(), list(), list()].map((one) => assert.rejects(one)));
  await pool.close();
});
