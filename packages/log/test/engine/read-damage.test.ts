// Damage to an open log: exactly the affected offsets cannot be read, and nothing is lost silently.
import assert from "node:assert/strict";
import { globSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { BATCH_HEADER_BYTES, isBatchIntact, readBatchHeader } from "../../src/batch/header.ts";
import {
  DamagedError,
  LogError,
  openLog,
  openNodeDisk,
  type Log,
  type LogEvent,
  type LogOptions,
  type PartitionView,
} from "../../src/index.ts";
import { appendAll } from "../simulation/fixture.ts";
import { readAll } from "../simulation/read-all.ts";

const COUNT = 40;

interface Stage {
  folder: string;
  log: Log;
  partition: PartitionView;
  events: LogEvent[];
  /** Paths of the segments, the partition's own and shared ones. */
  segments: string[];
}

/** A topic with many one-record batches in small segments, all of them on the disk. */
async function stage(
  t: TestContext,
  options: Partial<LogOptions> = {},
  valueBytes = 20_000,
): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), "platform-log-read-"));
  const events: LogEvent[] = [];
  const log = await openLog({
    disk: openNodeDisk(folder),
    onEvent: (event) => events.push(event),
    openFilesMax: 1,
    ...options,
  });
  t.after(async () => {
    await log.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const topic = await log.createTopic("t", { config: { segmentBytes: 100_000 } });
  const partition = topic.partitions[0]!;
  for (let at = 0; at < COUNT; at++) {
    await appendAll(log, partition, [`k${at}=${"v".repeat(valueBytes)}${at}`]);
    if (at % 5 === 4) await log.checkpoint();
  }
  // The only file that may stay open is another one.
  const other = (await log.createTopic("other")).partitions[0]!;
  await appendAll(log, other, ["x"]);
  await log.checkpoint();
  const segments = globSync("{topics,shared}/**/*.log", { cwd: folder })
    .sort()
    .map((path) => join(folder, path));
  return { folder, log, partition, events, segments };
}

function positionsOf(path: string): number[] {
  const bytes = readFileSync(path);
  const positions: number[] = [];
  for (let at = 0; at + BATCH_HEADER_BYTES <= bytes.length; at++) {
    if (bytes[at + 16] === 2 && isBatchIntact(bytes, at)) positions.push(at);
  }
  return positions;
}

function flip(path: string, position: number): void {
  const bytes = readFileSync(path);
  bytes[position] = bytes[position]! ^ 0x04;
  writeFileSync(path, bytes);
}

/** Reads everything, skipping damage. */
async function readAround(log: Log, partition: PartitionView) {
  const offsets: number[] = [];
  const damages: [number, number][] = [];
  for (let offset = partition.logStart; offset < partition.durableEnd;) {
    try {
      const { buffers, nextOffset } = await log.read(partition, offset, 50_000);
      for (const bytes of buffers) {
        for (let at = 0; at < bytes.length;) {
          const header = readBatchHeader(bytes, at)!;
          offsets.push(header.baseOffset);
          at += header.bytes;
        }
      }
      offset = nextOffset;
    } catch (error) {
      assert.ok(error instanceof DamagedError, String(error));
      const { fromOffset, resumeOffset } = error.damage;
      damages.push([fromOffset, resumeOffset]);
      offset = resumeOffset;
    }
  }
  return { offsets, damages };
}

const ALL = Array.from({ length: COUNT }, (_, offset) => offset);
const FIELDS = [
  { name: "base offset, raised", at: 7 },
  { name: "length", at: 10 },
  { name: "length, made huge", at: 8 },
  { name: "magic", at: 16 },
  { name: "checksum", at: 18 },
  { name: "last offset delta", at: 25 },
  { name: "records", at: 5_000 },
];

for (const { name, at } of FIELDS) {
  test(`a flipped bit in a batch's ${name} costs this batch and at most one neighbour, and is reported`, async (t) => {
    const { folder, log, partition, events, segments } = await stage(t);
    const own = segments.filter((path) => path.includes("/topics/"));
    const segment = own[1]!;
    flip(segment, positionsOf(segment)[2]! + at);
    const { offsets, damages } = await readAround(log, partition);
    const lost = ALL.filter((offset) => !offsets.includes(offset));
    assert.ok(lost.length >= 1 && lost.length <= 2, `lost ${lost.join()}`);
    for (const offset of lost) {
      assert.ok(damages.some(([from, to]) => from <= offset && offset < to));
    }
    assert.deepEqual(
      offsets,
      [...offsets].sort((a, b) => a - b),
    );
    assert.equal(events.filter(({ kind }) => kind === "damaged").length, 1);
    assert.equal(log.stats().damagedRanges, 1);
    // The copy is made in the background.
    await waitFor(() => log.stats().quarantineFiles > 0);
    assert.equal(readdirSync(join(folder, "quarantine")).length, 1);
    assert.deepEqual(await readAround(log, partition), { offsets, damages });
    assert.equal(events.filter(({ kind }) => kind === "damaged").length, 1);
  });
}

test("a missing closed segment costs only its own offsets", async (t) => {
  const { log, partition, segments } = await stage(t);
  const own = segments.filter((path) => path.includes("/topics/"));
  const base = Number(/(\d{20})-/.exec(own[1]!)![1]);
  const next = Number(/(\d{20})-/.exec(own[2]!)![1]);
  rmSync(own[1]!);
  const { offsets, damages } = await readAround(log, partition);
  assert.deepEqual(damages, [[base, next]]);
  assert.deepEqual(
    offsets,
    ALL.filter((offset) => offset < base || offset >= next),
  );
});

test("damage at the start of a partition moves the log start after it, also after a restart", async (t) => {
  const { folder, log, partition, segments } = await stage(t);
  const own = segments.filter((path) => path.includes("/topics/"));
  const next = Number(/(\d{20})-/.exec(own[1]!)![1]);
  rmSync(own[0]!);
  await assert.rejects(log.read(partition, 0, 1000), DamagedError);
  await waitFor(() => partition.logStart > 0);
  assert.equal(partition.logStart, next);
  const outside = (error: unknown) =>
    error instanceof LogError && error.code === "offset-out-of-range";
  await assert.rejects(log.read(partition, 0, 1000), outside);
  assert.equal(log.stats().damagedRanges, 0);
  await log.close();
  const again = await openLog({ disk: openNodeDisk(folder) });
  const reopened = again.topic("t")!.partitions[0]!;
  assert.equal(reopened.logStart, next);
  assert.equal((await readAll(again, reopened)).length, COUNT - next);
  await again.close();
});

test("small batches next to damage in a shared segment stay in place, so none is lost silently", async (t) => {
  const { log, partition, segments, events } = await stage(t, {}, 100);
  const shared = segments.filter((path) => path.includes("/shared/"));
  const target = shared.find((path) => positionsOf(path).length >= 5)!;
  flip(target, positionsOf(target)[1]! + 80);
  for (let round = 0; round < 20; round++) {
    await appendAll(log, partition, [`more=${"v".repeat(30_000)}`]);
    await log.checkpoint();
  }
  assert.equal(log.stats().state, "open");
  const { offsets, damages } = await readAround(log, partition);
  const lost = Array.from({ length: COUNT + 20 }, (_, offset) => offset).filter(
    (offset) => !offsets.includes(offset),
  );
  assert.equal(lost.length, 1);
  assert.equal(damages.length, 1);
  assert.deepEqual(
    events.filter(({ kind }) => kind === "checkpoint-failed"),
    [],
  );
});

for (const { name, at } of FIELDS) {
  test(`compaction does not touch a segment with a flipped bit in a batch's ${name}`, async (t) => {
    const { log, partition, segments } = await stage(t);
    await log.configureTopic(partition.topic, { cleanupPolicy: "compact" });
    const own = segments.filter((path) => path.includes("/topics/"));
    flip(own[1]!, positionsOf(own[1]!)[2]! + at);
    await assert.rejects(log.compact(partition), (error) => (error as LogError).code === "corrupt");
    const { offsets } = await readAround(log, partition);
    assert.ok(offsets.length >= COUNT - 2);
  });
}
