// Following a log: whole lines, rotations, and the bounds.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { LineFollower, type LineFollowerOptions } from "../../src/files/index.ts";

function follow(t: TestContext, options: Partial<LineFollowerOptions> = {}) {
  const folder = mkdtempSync(join(tmpdir(), "line-follower-"));
  const path = join(folder, "log");
  const seen: string[] = [];
  const counts = { missed: 0 };
  const follower = new LineFollower({
    readPath: () => path,
    onLines: (lines, missed) => {
      seen.push(...lines);
      counts.missed += missed;
    },
    onError: (error) => assert.fail(String(error)),
    ...options,
  });
  t.after(async () => {
    await follower.stop();
    rmSync(folder, { recursive: true });
  });
  return { follower, path, folder, seen, counts };
}

test("it begins at the end, and passes on whole lines only", async (t) => {
  const { follower, path, seen } = follow(t);
  writeFileSync(path, "old\n");
  follower.start();
  appendFileSync(path, "one\ntw");
  await follower.poll();
  assert.deepEqual(seen, ["one"]);
  appendFileSync(path, "o\nthrée\n\n");
  await follower.poll();
  assert.deepEqual(seen, ["one", "two", "thrée", ""]);
});

test("after a rotation it reads the rest of the old file and all of the new one, also if writers are late", async (t) => {
  const { follower, path, seen } = follow(t);
  writeFileSync(path, "");
  follower.start();
  appendFileSync(path, "1\n");
  await follower.poll();
  appendFileSync(path, "2\n");
  renameSync(path, `${path}.1`);
  writeFileSync(path, "3\n");
  await follower.poll();
  // A writer that has not reopened the log yet.
  appendFileSync(`${path}.1`, "4\n");
  renameSync(`${path}.1`, `${path}.2`);
  renameSync(path, `${path}.1`);
  writeFileSync(path, "5\n");
  await follower.poll();
  assert.deepEqual(seen.toSorted(), ["1", "2", "3", "4", "5"]);
});

test("a log that appears later, or is truncated in place, is read from its beginning", async (t) => {
  const { follower, path, seen } = follow(t);
  follower.start();
  await follower.poll();
  writeFileSync(path, "first\n");
  await follower.poll();
  truncateSync(path);
  await follower.poll();
  appendFileSync(path, "x\n");
  await follower.poll();
  assert.deepEqual(seen, ["first", "x"]);
});

test("a log that is truncated inside a line that is too long loses no line after it", async (t) => {
  const { follower, path, seen, counts } = follow(t, { lineBytesMax: 10 });
  writeFileSync(path, "");
  follower.start();
  appendFileSync(path, "long".repeat(100));
  await follower.poll();
  truncateSync(path);
  await follower.poll();
  appendFileSync(path, "x\n");
  await follower.poll();
  assert.deepEqual([seen, counts.missed], [["x"], 0]);
});

test("lines beyond the bounds are counted, not passed on", async (t) => {
  const { follower, path, seen, counts } = follow(t, { linesMax: 3, lineBytesMax: 300_000 });
  writeFileSync(path, "");
  follower.start();
  appendFileSync(path, "a\nb\nc\nd\ne\n");
  await follower.poll();
  assert.deepEqual([seen.splice(0), counts.missed], [["a", "b", "c"], 2]);
  appendFileSync(path, "long".repeat(100_000));
  await follower.poll();
  appendFileSync(path, `${"long".repeat(100_000)}\nshort\n${"x".repeat(299_999)}\n`);
  await follower.poll();
  assert.equal(counts.missed, 3);
  assert.deepEqual([seen[0], seen[1]?.length], ["short", 299_999]);
});

test(
  "a pipe is not opened: another program is to read it",
  { skip: process.platform === "win32" },
  async (t) => {
    const { follower, path, seen } = follow(t);
    assert.equal(spawnSync("mkfifo", [path]).status, 0);
    follower.start();
    await follower.poll();
    assert.deepEqual(seen, []);
  },
);

test("after a stop nothing is passed on, and a start begins at the end again", async (t) => {
  const { follower, path, seen } = follow(t);
  writeFileSync(path, "");
  follower.start();
  await follower.stop();
  appendFileSync(path, "unseen\n");
  follower.start();
  appendFileSync(path, "seen\n");
  await follower.poll();
  assert.deepEqual(seen, ["seen"]);
});

test(
  "a lasting error is reported once, and its end; lines from before are not passed on",
  { skip: process.platform === "win32" },
  async (t) => {
    const events: string[] = [];
    const { follower, path, seen } = follow(t, {
      onError: (error) => events.push((error as NodeJS.ErrnoException).code ?? ""),
      onRecovered: () => events.push("recovered"),
    });
    symlinkSync(path, path);
    follower.start();
    await sleep(350);
    assert.deepEqual(events, ["ELOOP"]);
    writeFileSync(`${path}.new`, "before\n");
    renameSync(`${path}.new`, path);
    for (const end = performance.now() + 20_000; events.length < 2; await sleep(10))
      assert.ok(performance.now() < end, "not seen in time");
    appendFileSync(path, "after\n");
    await follower.poll();
    assert.deepEqual([seen, events], [["after"], ["ELOOP", "recovered"]]);
  },
);
