// Listings of objects: pages are added at the end up to a bound, and a reload keeps what somebody has scrolled to.
import assert from "node:assert/strict";
import { test } from "node:test";
import { FolderList, ROWS_MAX, type FolderPage } from "../src/storage/folder-list.ts";

const PAGE = 1_000;
const ignore = (): void => undefined;

/** The pages of a folder with `count` keys. */
function readFolder(count: number) {
  const cursors: (string | undefined)[] = [];
  const read = async (cursor: string | undefined): Promise<FolderPage<{ key: string }>> => {
    cursors.push(cursor);
    const from = Number(cursor ?? 0);
    const to = Math.min(count, from + PAGE);
    return {
      prefixes: from === 0 ? ["a-folder/"] : [],
      items: Array.from({ length: to - from }, (_, at) => ({
        key: `key-${String(from + at).padStart(8, "0")}`,
      })),
      next_cursor: to < count ? String(to) : null,
    };
  };
  return { read, cursors };
}

test("of ten million keys the page keeps a bounded number, in their order", async () => {
  const { read, cursors } = readFolder(10_000_000);
  const list = new FolderList(read, ignore);
  await list.reload();
  assert.equal(list.state.rows.length, PAGE + 1);
  for (let n = 0; n < 200; n += 1) {
    // Called again by each scroll while the page is on its way.
    await Promise.all([list.loadMore(), list.loadMore()]);
  }
  const { rows, hasMore, isLoading } = list.state;
  assert.ok(rows.length >= ROWS_MAX && rows.length < ROWS_MAX + PAGE, `${rows.length}`);
  assert.deepEqual([hasMore, isLoading], [true, false]);
  assert.equal(cursors.length, 100);
  assert.deepEqual(rows[0], { kind: "folder", id: "a-folder/" });
  assert.ok(rows.every(({ id }, at) => at < 2 || rows[at - 1]!.id < id));
});

test("a reload reaches as far as before, within a bound", async () => {
  const { read, cursors } = readFolder(100_000);
  const list = new FolderList(read, ignore);
  await list.reload();
  for (let n = 0; n < 4; n += 1) {
    await list.loadMore();
  }
  const before = list.state.rows.length;
  const reloading = list.reload();
  assert.equal(list.state.rows.length, before, "rows stay while they are loaded again");
  await reloading;
  assert.equal(list.state.rows.length, before);
  assert.equal(cursors.length, 10);
  for (let n = 0; n < 60; n += 1) {
    await list.loadMore();
  }
  cursors.length = 0;
  await list.reload();
  assert.equal(cursors.length, 20);
  await list.loadMore();
  assert.equal(list.state.rows.at(-1)!.id, "key-00020999");
});

test("a failed page keeps the rows, and is not asked for again by itself", async () => {
  const { read } = readFolder(5_000);
  let isBroken = false;
  let calls = 0;
  const list = new FolderList((cursor) => {
    calls += 1;
    return isBroken ? Promise.reject(new Error("no storage")) : read(cursor);
  }, ignore);
  await list.reload();
  isBroken = true;
  await list.loadMore();
  assert.equal((list.state.error as Error).message, "no storage");
  assert.equal(list.state.rows.length, PAGE + 1);
  await list.loadMore();
  assert.equal(calls, 2);
  isBroken = false;
  await list.reload();
  await list.loadMore();
  assert.equal(list.state.error, undefined);
  assert.equal(list.state.rows.length, 2 * PAGE + 1);
});

test("a page that arrives after the list was left changes nothing", async () => {
  const { read } = readFolder(5_000);
  const list = new FolderList(read, ignore);
  const loading = list.reload();
  list.stop();
  await loading;
  assert.equal(list.state.rows.length, 0);
});
