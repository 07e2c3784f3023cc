// Snapshots of an open log: complete up to their moment, while everything else goes on.
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  checkLog,
  openLog,
  openNodeDisk,
  type Log,
  type LogSnapshot,
  type PartitionView,
} from "../../src/index.ts";
import { batchOf } from "../simulation/fixture.ts";
import { readAll } from "../simulation/read-all.ts";

// Small enough for many segments, checkpoints and writes in place within a second.
const limits = {
  // Checkpoints are due by time: the journal's bound, four times these bytes, must not stop the writers on a slow disk.
  checkpointBytes: 16 * 1024 ** 2,
  journalFileBytes: 32 * 1024,
  inPlaceBytesMin: 8 * 1024,
  checkpointMs: 20,
};
const segmentBytes = 32 * 1024;
/** Of one writer. On a slow disk, the copies would otherwise grow faster than they are read. */
const RECORDS_MAX = 1_000;

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "platform-log-snapshot-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** An acknowledged record. */
interface Acknowledged {
  topic: string;
  offset: number;
  value: string;
}

/** Appends to a partition until it is stopped. */
class Writer {
  readonly #log: Log;
  readonly #partition: PartitionView;
  readonly #bytes: number;
  readonly acknowledged: Acknowledged[] = [];
  #isStopped = false;
  readonly ended: Promise<void>;

  constructor(log: Log, partition: PartitionView, bytes: number) {
    this.#log = log;
    this.#partition = partition;
    this.#bytes = bytes;
    this.ended = this.#run();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.ended;
  }

  async #run(): Promise<void> {
    const { name: topic } = this.#partition.topic;
    for (let number = 0; !this.#isStopped && number < RECORDS_MAX; number++) {
      const key = number % 7;
      const value = `${topic} ${number} `.padEnd(this.#bytes, ".");
      const batch = batchOf(`${key}=${value}`);
      const [placed] = await this.#log.append([{ partition: this.#partition, batch }]);
      this.acknowledged.push({ topic, offset: placed!.baseOffset, value });
      await sleep(0);
    }
  }
}

async function copySnapshot({ files }: LogSnapshot, folder: string): Promise<void> {
  for (const { path, bytes, read } of files) {
    const chunks: Buffer[] = [];
    for await (const chunk of read()) chunks.push(chunk);
    const contents = Buffer.concat(chunks);
    assert.equal(contents.length, bytes, path);
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), contents);
    // Lets the log continue between two files.
    await sleep(1);
  }
}

async function readCopy(folder: string, expected: readonly Acknowledged[]): Promise<void> {
  const report = await checkLog(openNodeDisk(folder));
  assert.deepEqual(report.damaged, []);
  assert.ok(report.isWhole);
  const copy = await openLog({ disk: openNodeDisk(folder), ...limits });
  const found = new Map<string, Map<number, string>>();
  for (const topic of copy.topics()) {
    const records = await readAll(copy, topic.partitions[0]!, 100_000);
    found.set(topic.name, new Map(records.map((r) => [r.offset, String(r.value)])));
  }
  for (const { topic, offset, value } of expected) {
    assert.equal(found.get(topic)?.get(offset), value, `${topic} ${offset}`);
  }
  await copy.close();
}

test("a snapshot has every record acknowledged before it, while the log writes, deletes and compacts", async (t) => {
  const base = makeFolder(t);
  const log = await openLog({ disk: openNodeDisk(join(base, "log")), ...limits });
  const config = { segmentBytes };
  const large = await log.createTopic("large", { config });
  const small = await log.createTopic("small", { config });
  const keyed = await log.createTopic("keyed", {
    config: { segmentBytes, cleanupPolicy: "compact" },
  });
  const writers = [
    new Writer(log, large.partitions[0]!, 12_000),
    new Writer(log, small.partitions[0]!, 200),
    new Writer(log, keyed.partitions[0]!, 4_000),
  ];
  t.after(() => Promise.all(writers.map((writer) => writer.stop())));
  let lastTrim = 0;
  for (let round = 0; round < 6; round++) {
    const doomed = await log.createTopic(`doomed-${round}`, { config });
    const values = ["a", "b", "c"].map((text) => text.repeat(20_000));
    for (const value of values) {
      await log.append([{ partition: doomed.partitions[0]!, batch: batchOf(`k=${value}`) }]);
    }
    await sleep(100);
    // Compaction removes records of older keys, so only the newest of each key is certain.
    const expected = [writers[0]!, writers[1]!].flatMap(({ acknowledged }) => [...acknowledged]);
    expected.push(...values.map((value, offset) => ({ topic: doomed.name, offset, value })));
    const trimmed = large.partitions[0]!.durableEnd - 20;
    const snapshot = await log.snapshot();
    assert.deepEqual(
      snapshot.files.map(({ path }) => path).filter((path) => path.endsWith(".index")),
      [],
    );
    await log.deleteTopic(doomed);
    if (trimmed > 0) await log.deleteRecords(large.partitions[0]!, trimmed);
    await log.compact(keyed.partitions[0]!);
    for (let times = 0; times < 3; times++) await log.checkpoint();
    const folder = join(base, `copy-${round}`);
    await copySnapshot(snapshot, folder);
    await snapshot.release();
    await readCopy(
      folder,
      expected.filter(({ topic, offset }) => topic !== "large" || offset >= lastTrim),
    );
    lastTrim = Math.max(lastTrim, trimmed);
  }
  await Promise.all(writers.map((writer) => writer.stop()));
  t.diagnostic(`${writers.map(({ acknowledged }) => acknowledged.length).join(", ")} records`);
  await log.close();
});

test("released files are deleted, and a crash during a snapshot leaves nothing unknown", async (t) => {
  const base = makeFolder(t);
  const folder = join(base, "log");
  const log = await openLog({ disk: openNodeDisk(folder), ...limits });
  const doomed = await log.createTopic("doomed", { config: { segmentBytes } });
  const batch = batchOf(`k=${"x".repeat(40_000)}`);
  for (let times = 0; times < 5; times++) {
    await log.append([{ partition: doomed.partitions[0]!, batch: Buffer.from(batch) }]);
  }
  const place = join(folder, "topics", doomed.id.toString("hex"), "0");
  const listSegments = () => readdirSync(place).filter((name) => name.endsWith(".log"));
  await log.checkpoint();
  const before = listSegments();
  assert.ok(before.length > 1);
  const snapshot = await log.snapshot();
  const second = await log.snapshot();
  await log.deleteTopic(doomed);
  await log.checkpoint();
  assert.deepEqual(listSegments(), before, "held");

  const crashed = join(base, "crashed");
  cpSync(folder, crashed, { recursive: true });
  const again = await openLog({ disk: openNodeDisk(crashed), ...limits });
  assert.deepEqual(again.recovery.setAside, []);
  assert.deepEqual(readdirSync(join(crashed, "topics")), []);
  await again.close();

  await snapshot.release();
  await log.checkpoint();
  assert.deepEqual(listSegments(), before, "held by the second snapshot");
  await second.release();
  await log.checkpoint();
  assert.deepEqual(readdirSync(join(folder, "topics")), []);
  await log.close();
  await assert.rejects(log.snapshot(), { code: "closed" });
});
