// Filters of keys: one key is found by reading little, and never missed, whatever happens to the files.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  decodeBatch,
  encodeBatch,
  splitBatches,
  type StoredRecord,
} from "../../src/batch/index.ts";
import type { ColdOptions, Log, LogOptions, PartitionView, TopicConfig } from "../../src/index.ts";
import { openFixture, type Fixture } from "../simulation/fixture.ts";
import { Random } from "../simulation/random.ts";
import { readAll } from "../simulation/read-all.ts";
import { SimColdStore } from "../simulation/sim-cold-store.ts";
import { SimDisk } from "../simulation/sim-disk.ts";

const SEGMENT_BYTES = 512 * 1024;
const KEYS = 500;
const BATCHES = 300;
const RECORDS_PER_BATCH = 20;

interface KeyFixture extends Fixture {
  partition: PartitionView;
}

async function open(
  config: Partial<TopicConfig> = {},
  options: Partial<LogOptions> = {},
  disk?: SimDisk,
): Promise<KeyFixture> {
  const fixture = await openFixture(options, disk);
  const topic = await fixture.log.createTopic("orders", {
    config: { segmentBytes: SEGMENT_BYTES, keyIndex: true, ...config },
    orGet: true,
  });
  return { ...fixture, partition: topic.partitions[0]! };
}

/** Rare keys are in few batches, `often` is in every third, and every tenth record has no key. */
async function fill({ log, partition }: KeyFixture): Promise<void> {
  const random = new Random(11);
  for (let batch = 0; batch < BATCHES; batch += 1) {
    const records = Array.from({ length: RECORDS_PER_BATCH }, (_, index) => {
      const name = index === 0 && batch % 3 === 0 ? "often" : `key-${random.below(KEYS)}`;
      const key = index % 10 === 9 ? null : Buffer.from(name);
      const value = Buffer.alloc(300, `${batch}.${index} `);
      return { key, value, headers: [], timestamp: batch * 100 + ((index * 7) % 20) };
    });
    await log.append([{ partition, batch: encodeBatch(records) }]);
    if (batch % 20 === 0) await log.checkpoint();
  }
  await log.checkpoint();
}

interface Found {
  records: StoredRecord[];
  bytes: number;
}

/** The records with a key, as a reader that asks the filters finds them. */
async function findAll(log: Log, partition: PartitionView, name: string): Promise<Found> {
  const key = Buffer.from(name);
  const records: StoredRecord[] = [];
  let bytes = 0;
  for (let offset = partition.logStart; offset < partition.durableEnd;) {
    const place = await log.findKey(partition, key, offset);
    offset = place.offset;
    if (offset >= partition.durableEnd) break;
    const found = await log.read(partition, offset, place.bytes ?? 65_536);
    bytes += found.bytes;
    for (const batch of found.buffers.flatMap((buffer) => [...splitBatches(buffer)])) {
      for (const record of (await decodeBatch(batch)).records) {
        if (record.offset >= offset && record.key?.equals(key) === true) records.push(record);
      }
    }
    offset = found.nextOffset;
  }
  return { records, bytes };
}

async function checkKeys({ log, partition }: KeyFixture): Promise<void> {
  const all = await readAll(log, partition, 1_000_000);
  for (const name of ["often", "key-0", "key-77", `key-${KEYS - 1}`, "absent", ""]) {
    const { records } = await findAll(log, partition, name);
    const expected = all.filter(({ key }) => key?.toString() === name);
    assert.deepEqual(
      records.map(({ offset }) => offset),
      expected.map(({ offset }) => offset),
      name,
    );
  }
}

const listKeyFiles = async ({ disk, partition }: KeyFixture): Promise<string[]> => {
  const folder = `topics/${partition.topic.id.toString("hex")}/0`;
  return (await disk.list(folder))
    .filter((name) => name.endsWith(".keys"))
    .map((name) => `${folder}/${name}`)
    .toSorted();
};

test("a key is found in closed segments by reading few of their bytes", async () => {
  const fixture = await open();
  await fill(fixture);
  const { log, partition } = fixture;
  await checkKeys(fixture);
  assert.deepEqual(await listKeyFiles(fixture), []);
  await log.indexKeys();
  const files = await listKeyFiles(fixture);
  assert.ok(files.length >= 3, `${files.length} files`);
  await checkKeys(fixture);
  const absent = await findAll(log, partition, "absent");
  const growing = partition.bytes - files.length * SEGMENT_BYTES;
  assert.ok(absent.bytes <= Math.max(growing, SEGMENT_BYTES), `${absent.bytes} bytes`);
  assert.ok(absent.bytes < partition.bytes / 2);
  await log.close();
});

test("times of records that are passed are told", async () => {
  const fixture = await open();
  await fill(fixture);
  await fixture.log.indexKeys();
  const all = await readAll(fixture.log, fixture.partition, 1_000_000);
  const place = await fixture.log.findKey(fixture.partition, Buffer.from("absent"), 0);
  const passed = all.filter(({ offset }) => offset < place.offset);
  assert.ok(passed.length > 0);
  assert.equal(place.passedTime, Math.max(...passed.map(({ timestamp }) => timestamp)));
  await fixture.log.close();
});

test("files that are lost or damaged are made again, and no key is missed meanwhile", async () => {
  const fixture = await open();
  await fill(fixture);
  await fixture.log.indexKeys();
  const files = await listKeyFiles(fixture);
  await fixture.log.close();
  const { disk } = fixture;
  await disk.remove(files[0]!);
  const size = (await disk.size(files[1]!))!;
  const damaged = await disk.open(files[1]!, "write");
  await damaged.write([Buffer.from([0xff, 0xff, 0xff])], Math.floor(size / 2));
  await damaged.close();
  const again = await open({}, {}, disk);
  await checkKeys(again);
  await again.log.indexKeys();
  assert.deepEqual(await listKeyFiles(again), files);
  await checkKeys(again);
  assert.equal(
    (await again.log.findKey(again.partition, Buffer.from("absent"), 0)).bytes,
    undefined,
  );
  await again.log.close();
});

test("a file goes with its segment: retention, compaction, deletion", async () => {
  const fixture = await open();
  await fill(fixture);
  const { log, partition } = fixture;
  await log.indexKeys();
  const before = await listKeyFiles(fixture);
  await log.deleteRecords(partition, Math.floor(partition.durableEnd / 2));
  await log.checkpoint();
  assert.deepEqual(
    await listKeyFiles(fixture),
    before.slice(-(await listKeyFiles(fixture)).length),
  );
  assert.ok((await listKeyFiles(fixture)).length < before.length);
  await checkKeys(fixture);
  await log.configureTopic(partition.topic, { cleanupPolicy: "compact" });
  await log.compact(partition);
  await log.checkpoint();
  await log.indexKeys();
  await checkKeys(fixture);
  await log.deleteTopic(partition.topic);
  await log.checkpoint();
  assert.deepEqual(await listKeyFiles(fixture), []);
  await log.close();
});

test("filters stay when a segment leaves the disk, and spare the object store", async () => {
  const store = new SimColdStore();
  const cache = new SimDisk(new Random(3));
  const cold: ColdOptions = { store, cache, cacheBytesMax: 10_000_000, isUploading: true };
  const fixture = await open({ offload: true, localRetentionMs: 0 }, { cold });
  await fill(fixture);
  const { log, partition } = fixture;
  await log.offload();
  assert.ok(log.isRemote(partition, 0), "the first segment is only in the store");
  const before = log.offloadStatus().reads;
  await findAll(log, partition, "absent");
  assert.deepEqual(log.offloadStatus().reads, before);
  await checkKeys(fixture);
  await log.close();
});

test("topics without the setting have no files", async () => {
  const fixture = await open({ keyIndex: false });
  await fill(fixture);
  await fixture.log.indexKeys();
  assert.deepEqual(await listKeyFiles(fixture), []);
  await checkKeys(fixture);
  await fixture.log.close();
});
