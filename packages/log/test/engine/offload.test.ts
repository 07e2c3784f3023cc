// Offload of closed segments: upload, reading back, removal, and what a failing store must not do.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  checkLog,
  DamagedError,
  LogError,
  repairLog,
  type ColdOptions,
  type Log,
  type LogEvent,
  type LogOptions,
  type PartitionView,
  type TopicConfig,
} from "../../src/index.ts";
import { appendAll, batchOf, openFixture, type Fixture } from "../simulation/fixture.ts";
import { Random } from "../simulation/random.ts";
import { readAll } from "../simulation/read-all.ts";
import { SimColdStore } from "../simulation/sim-cold-store.ts";
import { SimDisk } from "../simulation/sim-disk.ts";

const SEGMENT_BYTES = 2_000;

interface ColdFixture extends Fixture {
  store: SimColdStore;
  cache: SimDisk;
  cold: ColdOptions;
  events: LogEvent[];
  partition: PartitionView;
}

/** A log with an offloaded topic of one partition. */
async function openCold(
  config: Partial<TopicConfig> = {},
  options: Partial<LogOptions> = {},
  before?: ColdFixture,
): Promise<ColdFixture> {
  const store = before?.store ?? new SimColdStore();
  const cache = before?.cache ?? new SimDisk(new Random(3));
  const cold: ColdOptions = { store, cache, cacheBytesMax: 1_000_000, isUploading: true };
  const events: LogEvent[] = [];
  const fixture = await openFixture(
    { cold, onEvent: (event) => events.push(event), ...options },
    before?.disk,
  );
  const topic = await fixture.log.createTopic("cold", {
    config: { segmentBytes: SEGMENT_BYTES, offload: true, ...config },
    orGet: true,
  });
  return { ...fixture, store, cache, cold, events, partition: topic.partitions[0]! };
}

/** Fills segments with values `prefix0`, `prefix1`, …; one value is about half a segment. */
async function fill(
  log: Log,
  partition: PartitionView,
  count: number,
  prefix = "v",
): Promise<void> {
  for (let at = 0; at < count; at++) {
    const value = `${prefix}${at} `.padEnd(SEGMENT_BYTES / 2, "x");
    await log.append([{ partition, batch: batchOf(value, at + 1) }]);
  }
  await log.checkpoint();
}

async function valuesOf(log: Log, partition: PartitionView): Promise<string[]> {
  const records = await readAll(log, partition, 700);
  return records.map(({ value }) => String(value).split(" ")[0]!);
}

const names = (count: number, prefix = "v") =>
  Array.from({ length: count }, (_, at) => prefix + at);
const listed = (log: Log) => [...log.objects()].map(({ object }) => object).toSorted();
const stored = (store: SimColdStore) => [...store.objects.keys()].toSorted();
const reopen = async (fixture: ColdFixture) => {
  await fixture.log.close();
  return openCold({}, {}, fixture);
};
const countFiles = async ({ disk, log }: Fixture) => {
  const id = log.topic("cold")!.id.toString("hex");
  return (await disk.list(`topics/${id}/0`)).filter((name) => name.endsWith(".log")).length;
};

test("closed segments are uploaded, leave the disk, and are read back as they were", async () => {
  const fixture = await openCold({ localRetentionBytes: 0 });
  const { log, partition, store } = fixture;
  await fill(log, partition, 20);
  const before = await readAll(log, partition);
  await log.offload();
  const status = log.offloadStatus();
  assert.ok(status.remoteSegments >= 9, `${status.remoteSegments} segments`);
  assert.equal(status.pendingSegments, 0);
  assert.deepEqual(stored(store), listed(log));
  for (const [object, bytes] of store.objects) {
    assert.match(
      object,
      /^log\/[0-9a-f]{32}\/[0-9a-f]{32}\/0\/\d{20}-\d{20}-[0-9a-f]{8}\.segment$/,
    );
    assert.equal(bytes.toString("latin1", 0, 6), "PLFSEG");
  }
  await log.checkpoint();
  assert.ok((await countFiles(fixture)) <= 1);
  assert.deepEqual(await readAll(log, partition), before);
  const later = await reopen(fixture);
  assert.deepEqual(later.log.recovery.quarantined, []);
  assert.deepEqual(await readAll(later.log, later.partition), before);
  await fill(later.log, later.partition, 4, "w");
  assert.deepEqual(await valuesOf(later.log, later.partition), [...names(20), ...names(4, "w")]);
  const found = await later.log.findTimestamp(later.partition, 11);
  assert.deepEqual(found, { offset: 10, timestamp: 11 });
  await later.log.close();
});

test("a topic without the setting, a growing segment and shared segments stay local", async () => {
  const { log, partition, store } = await openCold({ offload: false, localRetentionBytes: 0 });
  await fill(log, partition, 20);
  const small = (await log.createTopic("small", { config: { offload: true } })).partitions[0]!;
  await appendAll(log, small, ["a", "b"]);
  await log.checkpoint();
  await log.offload();
  assert.equal(store.objects.size, 0);
  const growing = (await log.createTopic("growing", { config: { offload: true } })).partitions[0]!;
  await fill(log, growing, 3);
  await log.offload();
  assert.equal(store.objects.size, 0);
  await log.close();
});

test("a growing segment is closed after the roll time, and later appends go to the next one", async () => {
  const fixture = await openCold({ segmentBytes: 1_000_000 });
  const { log, partition, store, clock } = fixture;
  await fill(log, partition, 3);
  await log.offload();
  assert.equal(store.objects.size, 0);
  clock.advance(3_600_000);
  await log.offload();
  assert.equal(store.objects.size, 1);
  await fill(log, partition, 2, "w");
  const later = await reopen(fixture);
  await fill(later.log, later.partition, 2, "x");
  const expected = [...names(3), ...names(2, "w"), ...names(2, "x")];
  assert.deepEqual(await valuesOf(later.log, later.partition), expected);
  await later.log.close();
});

test("retention, deletion of records and of topics remove exactly the objects that nothing refers to", async () => {
  const fixture = await openCold({ localRetentionBytes: 0 });
  const { log, partition, store } = fixture;
  await fill(log, partition, 20);
  await log.offload();
  const count = store.objects.size;
  await log.deleteRecords(partition, 7);
  await log.offload();
  assert.ok(store.objects.size < count);
  assert.deepEqual(stored(store), listed(log));
  await log.configureTopic(log.topic("cold")!, { retentionBytes: 4 * SEGMENT_BYTES });
  assert.ok(log.applyRetention() > 0);
  await log.offload();
  assert.ok(store.objects.size <= 5, `${store.objects.size} objects`);
  assert.deepEqual(stored(store), listed(log));
  await log.deleteTopic(log.topic("cold")!);
  await log.offload();
  assert.deepEqual(stored(store), []);
  assert.deepEqual(await fixture.disk.list("topics"), []);
  await log.close();
});

test("a store that fails loses nothing, and everything is uploaded and removed once it is back", async () => {
  const fixture = await openCold({ localRetentionBytes: 0 });
  const { log, partition, store, clock, events } = fixture;
  await fill(log, partition, 6);
  store.fault = () => "unavailable";
  await log.offload();
  await fill(log, partition, 6, "w");
  for (let round = 0; round < 5; round++) {
    clock.advance(400_000);
    await log.offload();
  }
  assert.equal(store.objects.size, 0);
  assert.deepEqual(await valuesOf(log, partition), [...names(6), ...names(6, "w")]);
  assert.ok(
    events.some((event) => event.kind === "offload-failed" && event.code === "unavailable"),
  );
  const { lastError, oldestPendingAtMs } = log.offloadStatus();
  assert.equal(lastError?.code, "unavailable");
  assert.ok(oldestPendingAtMs !== undefined && oldestPendingAtMs < clock.now() - 1_000_000);
  store.fault = () => undefined;
  clock.advance(400_000);
  await log.offload();
  assert.equal(log.offloadStatus().pendingSegments, 0);
  assert.deepEqual(stored(store), listed(log));
  store.fault = (operation) => (operation === "remove" ? "refused" : undefined);
  await log.deleteTopic(log.topic("cold")!);
  await log.offload();
  const left = store.objects.size;
  assert.ok(left > 0);
  const later = await reopen(fixture);
  assert.ok(later.log.offloadStatus().waitingRemovals > 0);
  store.fault = () => undefined;
  await later.log.offload();
  assert.equal(store.objects.size, 0);
  await later.log.close();
});

test("a store that is away for an hour refuses no publish, is asked seldom, and gets everything", async () => {
  const { log, partition, store, clock } = await openCold({ localRetentionBytes: 0 });
  await fill(log, partition, 6);
  store.fault = () => "unavailable";
  const values = names(6);
  // A pass each second, and a segment each minute.
  for (let second = 0; second < 3_600; second++) {
    if (second % 30 === 0) {
      await fill(log, partition, 1, `hour${second}-`);
      values.push(`hour${second}-0`);
    }
    await log.offload();
    clock.advance(1_000);
  }
  const asked = store.operations.length;
  assert.ok(asked < 200, `the store was asked ${asked} times`);
  assert.equal(store.objects.size, 0);
  assert.ok(log.offloadStatus().pendingSegments >= 60);
  assert.deepEqual(await valuesOf(log, partition), values);
  store.fault = () => undefined;
  for (let second = 0; second < 300; second++) {
    clock.advance(1_000);
    await log.offload();
  }
  assert.equal(log.offloadStatus().pendingSegments, 0);
  assert.deepEqual(stored(store), listed(log));
  assert.deepEqual(await valuesOf(log, partition), values);
  await log.close();
});

test("uploads that end in any failure leave no object behind, and no name is used twice", async () => {
  for (const operation of ["put", "head", "remove"] as const) {
    for (const point of ["before", "after"] as const) {
      const { log, partition, store, clock } = await openCold({ localRetentionBytes: 0 });
      await fill(log, partition, 8);
      let failures = 3;
      store.fault = (one, at) =>
        one === operation && at === point && failures-- > 0 ? "unavailable" : undefined;
      for (let round = 0; round < 8; round++) {
        await log.offload();
        clock.advance(400_000);
      }
      assert.deepEqual(stored(store), listed(log), `${operation} ${point}`);
      assert.equal(log.offloadStatus().pendingSegments, 0);
      assert.deepEqual(await valuesOf(log, partition), names(8));
      await log.close();
    }
  }
});

test("a damaged segment stays local and is reported, and the others are uploaded", async () => {
  const { log, partition, store, disk, events } = await openCold({ localRetentionBytes: 0 });
  await fill(log, partition, 10);
  const id = log.topic("cold")!.id.toString("hex");
  const [first] = (await disk.list(`topics/${id}/0`))
    .filter((name) => name.endsWith(".log"))
    .sort();
  disk.damage(`topics/${id}/0/${first}`, 4096 + 500);
  await log.offload();
  const damaged = events.filter((event) => event.kind === "offload-damaged");
  assert.deepEqual(
    damaged.map(({ file, position }) => [file, position]),
    [[`topics/${id}/0/${first}`, 4096]],
  );
  assert.ok(store.objects.size >= 3);
  assert.deepEqual(stored(store), listed(log));
  assert.ok((await disk.list(`topics/${id}/0`)).includes(first!));
  await log.close();
});

test("a missing object is a damaged range, and a damaged chunk of the cache is fetched again", async () => {
  const fixture = await openCold({ localRetentionBytes: 0 });
  const { log, partition, store, cache } = fixture;
  await fill(log, partition, 10);
  await log.offload();
  await log.checkpoint();
  assert.equal((await valuesOf(log, partition)).length, 10);
  for (const name of await cache.list("")) cache.damage(name, 4096 + 400);
  const later = await reopen(fixture);
  assert.equal((await valuesOf(later.log, later.partition)).length, 10);
  for (const name of await cache.list("")) await cache.remove(name);
  assert.equal((await valuesOf(later.log, later.partition)).length, 10);
  await later.log.close();
  for (const name of await cache.list("")) await cache.remove(name);
  const gone = stored(store)[1]!;
  store.objects.delete(gone);
  const third = await openCold({}, {}, fixture);
  const [base, next] = gone.split("/").at(-1)!.split("-").map(Number) as [number, number];
  await assert.rejects(third.log.read(third.partition, base, 1_000), (error) => {
    assert.ok(error instanceof DamagedError, String(error));
    const { fromOffset, resumeOffset, file } = error.damage;
    assert.deepEqual([fromOffset, resumeOffset, file], [base, next, gone]);
    return true;
  });
  assert.ok((await third.log.read(third.partition, next, 1_000)).bytes > 0);
  assert.ok(third.events.some(({ kind }) => kind === "damaged"));
  await third.log.close();
});

test("a damaged local copy is replaced by its object", async () => {
  const { log, partition, disk, events } = await openCold();
  await fill(log, partition, 10);
  await log.offload();
  const id = log.topic("cold")!.id.toString("hex");
  const [first] = (await disk.list(`topics/${id}/0`))
    .filter((name) => name.endsWith(".log"))
    .sort();
  disk.damage(`topics/${id}/0/${first}`, 4096 + 500);
  assert.deepEqual(await valuesOf(log, partition), names(10));
  assert.ok(events.some(({ kind }) => kind === "healed"));
  assert.deepEqual(log.damages(), []);
  await log.close();
});

test("without its store a log serves what is local, and remote records are unavailable, not lost", async () => {
  const fixture = await openCold({ localRetentionBytes: 0 });
  const { log, partition, store, cold } = fixture;
  await fill(log, partition, 10);
  await log.offload();
  await fill(log, partition, 1, "hot");
  await log.close();
  const later = await openCold({}, { cold: undefined }, fixture);
  const isUnavailable = (error: unknown) =>
    error instanceof LogError && error.code === "cold-unavailable";
  await assert.rejects(later.log.read(later.partition, 0, 1_000), isUnavailable);
  assert.ok((await later.log.read(later.partition, 10, 10_000)).bytes > 0);
  await fill(later.log, later.partition, 1, "hotter");
  assert.deepEqual(later.log.damages(), []);
  await later.log.setColdStore(cold);
  assert.equal((await valuesOf(later.log, later.partition)).length, 12);
  await later.log.close();
  const patient = await openCold({}, {}, fixture);
  for (const name of await patient.cache.list("")) await patient.cache.remove(name);
  await patient.log.setColdStore({ ...cold, cache: new SimDisk(new Random(5)) });
  store.fault = (operation) => (operation === "read" ? "unavailable" : undefined);
  const waiting = assert.rejects(patient.log.read(patient.partition, 0, 1_000), isUnavailable);
  for (let at = 0; at < 60; at++) {
    await new Promise((resolve) => setImmediate(resolve));
    patient.clock.advance(1_000);
  }
  await waiting;
  store.fault = () => undefined;
  assert.ok((await patient.log.read(patient.partition, 0, 1_000)).bytes > 0);
  await patient.log.close();
});

test("one fetch serves all readers of a chunk", async () => {
  const { log, partition, store } = await openCold({ localRetentionBytes: 0 });
  await fill(log, partition, 4);
  await log.offload();
  await log.checkpoint();
  store.operations.length = 0;
  await Promise.all(Array.from({ length: 20 }, () => log.read(partition, 0, 500)));
  assert.equal(store.operations.filter((one) => one.startsWith("read")).length, 1);
  await log.close();
});

test("a full disk drops uploaded copies before publishing stops, whatever local retention says", async () => {
  const disk = new SimDisk(new Random(7));
  disk.capacity = 5_000_000;
  const cold = {
    store: new SimColdStore(),
    cache: new SimDisk(new Random(3)),
    cacheBytesMax: 1_000_000,
    isUploading: true,
  };
  const { log } = await openFixture({ cold, reserveBytes: 600_000 }, disk);
  const config = { segmentBytes: 20_000, offload: true };
  const partition = (await log.createTopic("cold", { config })).partitions[0]!;
  for (let round = 0; round < 40; round++) {
    for (let at = 0; at < 80; at++) {
      const value = `r${round}-${at} `.padEnd(3_000, "x");
      await log.append([{ partition, batch: batchOf(value, at + 1) }]);
    }
    await log.offload();
  }
  assert.equal(partition.durableEnd, 3_200);
  assert.ok(cold.store.objects.size > 100);
  assert.equal((await valuesOf(log, partition)).length, 3_200);
  await log.close();
});

test("compacted topics are not offloaded, and offloaded ones are not compacted", async () => {
  const { log, partition } = await openCold();
  const isRefused = (error: unknown) =>
    error instanceof LogError && error.code === "invalid-argument";
  const compacted = { offload: true, cleanupPolicy: "compact" } as const;
  await assert.rejects(log.createTopic("no", { config: compacted }), isRefused);
  const topic = log.topic("cold")!;
  await assert.rejects(log.configureTopic(topic, { cleanupPolicy: "compact" }), isRefused);
  await fill(log, partition, 6);
  await log.offload();
  await assert.rejects(
    log.configureTopic(topic, { offload: false, cleanupPolicy: "compact,delete" }),
    isRefused,
  );
  await log.configureTopic(topic, { offload: false });
  assert.deepEqual(await valuesOf(log, partition), names(6));
  await log.close();
});

test("objects that nothing refers to are counted and never removed", async () => {
  const fixture = await openCold();
  const { log, partition, store } = fixture;
  await fill(log, partition, 6);
  await log.offload();
  assert.equal(log.offloadStatus().unknownObjects, 0);
  const prefix = /^log\/[0-9a-f]{32}\//.exec(stored(store)[0]!)![0];
  store.objects.set(`${prefix}stranger`, Buffer.from("x"));
  store.objects.set("log/another/object", Buffer.from("x"));
  const later = await reopen(fixture);
  await later.log.offload();
  assert.equal(later.log.offloadStatus().unknownObjects, 1);
  assert.ok(later.events.some(({ kind }) => kind === "unknown-objects"));
  await later.log.deleteTopic(later.log.topic("cold")!);
  await later.log.offload();
  assert.deepEqual(stored(store), ["log/another/object", `${prefix}stranger`]);
  await later.log.close();
});

test("a log that was copied without its id keeps the objects of the other log", async () => {
  const fixture = await openCold({ localRetentionBytes: 0 });
  const { log, partition, store, disk } = fixture;
  await fill(log, partition, 10);
  await log.offload();
  await log.close();
  await disk.remove("log.id");
  const copy = await openCold({}, {}, fixture);
  assert.deepEqual(await valuesOf(copy.log, copy.partition), names(10));
  const before = stored(store);
  await fill(copy.log, copy.partition, 4, "w");
  await copy.log.offload();
  assert.ok(store.objects.size > before.length);
  await copy.log.deleteTopic(copy.log.topic("cold")!);
  await copy.log.offload();
  assert.deepEqual(stored(store), before);
  await copy.log.close();
});

test("a lost manifest is rebuilt from files and objects, and not without the store", async () => {
  const fixture = await openCold({ localRetentionBytes: 0 });
  const { log, partition, disk, store } = fixture;
  await fill(log, partition, 10);
  await log.offload();
  await fill(log, partition, 3, "w");
  await log.close();
  for (const name of await disk.list("manifest")) disk.damage(`manifest/${name}`, 1_500);
  const isRefused = (error: unknown) => error instanceof LogError && error.code === "needs-repair";
  await assert.rejects(openFixture({}, disk), isRefused);
  const broken = new SimColdStore();
  broken.fault = () => "unavailable";
  await assert.rejects(openFixture({ cold: { ...fixture.cold, store: broken } }, disk), isRefused);
  const later = await openCold({}, {}, fixture);
  assert.deepEqual(await valuesOf(later.log, later.partition), [...names(10), ...names(3, "w")]);
  await later.log.offload();
  assert.deepEqual(stored(store), listed(later.log));
  await later.log.close();
});

test("a check looks for objects, and a repair turns missing and damaged ones into damaged ranges", async () => {
  const fixture = await openCold({ localRetentionBytes: 0 });
  const { log, partition, store, disk } = fixture;
  await fill(log, partition, 12);
  await log.offload();
  await log.close();
  const objects = { store, isRead: false };
  const whole = await checkLog(disk, objects);
  assert.ok(whole.isWhole && whole.objects.isChecked && whole.objects.count >= 5);
  const [, second, third, fourth] = stored(store);
  const [from] = second!.split("/").at(-1)!.split("-").map(Number) as [number];
  store.objects.delete(second!);
  store.objects.set(third!, store.objects.get(third!)!.subarray(0, 5_000));
  const damaged = store.objects.get(fourth!)!;
  // In the first of its two batches.
  damaged[4096 + 300]! ^= 0x55;
  const shallow = await checkLog(disk, objects);
  assert.deepEqual(
    shallow.damaged.map(({ file }) => file),
    [second, third],
  );
  const deep = await checkLog(disk, { store, isRead: true });
  assert.deepEqual(
    deep.damaged.map(({ file }) => file),
    [second, third, fourth],
  );
  assert.ok((await checkLog(disk)).isWhole, "the disk alone is whole");
  const broken = new SimColdStore();
  broken.fault = () => "unavailable";
  await assert.rejects(checkLog(disk, { store: broken, isRead: false }), /head fails/);
  const report = await repairLog({ disk, reserveBytes: 0 }, { store, isRead: true });
  assert.equal(report.damaged.length, 3);
  const again = await checkLog(disk, { store, isRead: true });
  assert.deepEqual(again.damaged, []);
  const later = await openCold({}, {}, fixture);
  const expected = names(12).filter((_, at) => at < from || at > from + 4);
  assert.deepEqual(await valuesOf(later.log, later.partition), expected);
  await later.log.offload();
  assert.deepEqual(stored(store), listed(later.log));
  await later.log.close();
});

test("a local copy without its object is uploaded again after a repair", async () => {
  const fixture = await openCold();
  const { log, partition, store, disk } = fixture;
  await fill(log, partition, 8);
  await log.offload();
  await log.close();
  store.objects.delete(stored(store)[0]!);
  const objects = { store, isRead: false };
  const report = await checkLog(disk, objects);
  assert.deepEqual([report.isWhole, report.damaged.length, report.healed.length], [false, 0, 1]);
  await repairLog({ disk, reserveBytes: 0 }, objects);
  const later = await openCold({}, {}, fixture);
  assert.deepEqual(await valuesOf(later.log, later.partition), names(8));
  await later.log.offload();
  assert.deepEqual(stored(store), listed(later.log));
  assert.ok((await checkLogAfter(later)).isWhole);
});

async function checkLogAfter({ log, disk, store }: ColdFixture) {
  await log.close();
  return checkLog(disk, { store, isRead: true });
}
