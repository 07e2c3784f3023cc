// Versions of an object: all are reached up to a bound, and a reload reaches as far as before.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  canReadMore,
  NO_VERSIONS,
  readVersions,
  VERSIONS_MAX,
} from "../src/storage/version-list.ts";

/** A bucket where `count` versions of `state` are followed by other keys. */
function listBucket(count: number, others: number) {
  const limits: number[] = [];
  const read = async (cursor: string | undefined, limit: number) => {
    limits.push(limit);
    const from = Number(cursor ?? 0);
    const to = Math.min(count + others, from + limit);
    const items = Array.from({ length: to - from }, (_, at) => ({
      key: from + at < count ? "state" : "state.old",
      version: String(from + at),
    }));
    return { items, next_cursor: to < count + others ? String(to) : null };
  };
  return { read, limits };
}

test("versions are read page by page, and the last ones end the list", async () => {
  const { read, limits } = listBucket(450, 3);
  const first = await readVersions("state", NO_VERSIONS, 1, read);
  assert.deepEqual([first.versions.length, first.next], [200, "200"]);
  const more = await readVersions("state", first, 400, read);
  assert.deepEqual([more.versions.length, more.next], [400, "400"]);
  const all = await readVersions("state", more, 800, read);
  assert.deepEqual([all.versions.length, all.next], [450, undefined]);
  assert.deepEqual(
    all.versions.map(({ version }) => version),
    Array.from({ length: 450 }, (_, at) => String(at)),
  );
  assert.ok(!canReadMore(all));
  assert.deepEqual(limits, [200, 200, 400]);
});

test("a reload reaches as far as before, with one more, in large pages", async () => {
  const { read, limits } = listBucket(5_000, 0);
  const again = await readVersions("state", NO_VERSIONS, 2_401, read);
  assert.equal(again.versions.length, 2_600);
  assert.deepEqual(limits, [1_000, 1_000, 600]);
  const whole = await readVersions("state", NO_VERSIONS, 5_001, read);
  assert.deepEqual([whole.versions.length, whole.next], [5_000, undefined]);
});

test("of a million versions a bounded number is read", async () => {
  const { read } = listBucket(1_000_000, 0);
  const many = await readVersions("state", NO_VERSIONS, 1_000_000, read);
  assert.equal(many.versions.length, VERSIONS_MAX);
  assert.notEqual(many.next, undefined);
  assert.ok(!canReadMore(many));
});

test("an object that has no versions any more is an empty list", async () => {
  const { read } = listBucket(0, 5);
  assert.deepEqual(await readVersions("state", NO_VERSIONS, 1, read), NO_VERSIONS);
});
