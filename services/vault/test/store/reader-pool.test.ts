// Threads that read the index: started when they are needed, and again after they failed.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { StoreFolders } from "../../src/disk/files.ts";
import { ReaderPool } from "../../src/query/reader-pool.ts";
import { makeFolder, makeStore } from "./fixture.ts";

test("each query is answered, also after the thread of a former one has failed", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "vault-readers-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const pool = new ReaderPool(join(folder, "missing.db"), 2, 10);
  const list = () => pool.query("listUploads", { bucketId: 1, maxUploads: 1 } as never);
  await assert.rejects(list(), /The index cannot be read/);
  await assert.rejects(list(), /The index cannot be read/);
  await Promise.all([list(), list(), list()].map((one) => assert.rejects(one)));
  await pool.close();
});

test("threads end when they were idle, and start again for the next query", async (t) => {
  const dataDir = makeFolder(t);
  await makeStore(t, { dataDir });
  const pool = new ReaderPool(new StoreFolders(dataDir).index, 2, 10, 20);
  const list = () => pool.query("listUploads", { bucketId: 1, maxUploads: 1 } as never);
  const pages = await Promise.all([list(), list(), list()]);
  assert.deepEqual(pages[0]?.uploads, []);
  await waitFor(() => pool.count === 0);
  assert.deepEqual((await list()).uploads, []);
  assert.equal(pool.count, 1);
  await pool.close();
});
