// The public API of the log: appends, reads, topics, retention, compaction, bounds.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { encodeBatch, readBatchHeader } from "../../src/batch/index.ts";
import { LogError, openLog, type Disk } from "../../src/index.ts";
import { appendAll, batchOf, openFixture, recordOf } from "../simulation/fixture.ts";
import { readAll } from "../simulation/read-all.ts";

function code(expected: string) {
  return (error: unknown) => error instanceof LogError && error.code === expected;
}

/** A disk whose files sync late: by the first pair of a part of their path and a delay in ms. */
async function openSlowDisk(...delays: [part: string, ms: number][]): Promise<Disk> {
  const { log, disk } = await openFixture();
  await log.close();
  return override<Disk>(disk, {
    open: async (path, mode) => {
      const file = await disk.open(path, mode);
      const ms = delays.find(([part]) => path.includes(part))?.[1] ?? 0;
      return override(file, { sync: () => sleep(ms).then(() => file.sync()) });
    },
  });
}

function override<T extends object>(target: T, members: Partial<T>): T {
  return new Proxy(target, {
    get: (_, name) => {
      const member: unknown = Reflect.get(name in members ? members : target, name);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

async function valuesOf(...args: Parameters<typeof readAll>): Promise<string[]> {
  return (await readAll(...args)).map(
    (record) =>
      `${record.key === null ? "" : `${String(record.key)}=`}${String(record.value ?? "")}`,
  );
}

test("an append is invisible until its sync returns, then listeners are called", async () => {
  const { log, disk } = await openFixture();
  const topic = await log.createTopic("t");
  const partition = topic.partitions[0]!;
  const seen: number[] = [];
  log.watch((partitions) => {
    if (partitions.has(partition)) seen.push(partition.durableEnd);
  });
  let syncs = 0;
  disk.fault = (operation) => {
    if (operation === "sync") {
      syncs++;
      assert.equal(partition.durableEnd, 0, "not visible while the sync is under way");
    }
    return undefined;
  };
  await appendAll(log, partition, ["a", "b", "c"]);
  assert.equal(syncs, 1, "one sync for everyone who waits");
  assert.deepEqual(seen, [3]);
  assert.deepEqual(await valuesOf(log, partition), ["a", "b", "c"]);
  await log.close();
});

test("an entry over several partitions gets offsets in call order", async () => {
  const { log } = await openFixture();
  const { partitions } = await log.createTopic("t", { partitions: 2 });
  const first = log.append([
    { partition: partitions[0]!, batch: batchOf("a") },
    { partition: partitions[1]!, batch: encodeBatch([recordOf("b"), recordOf("c")]) },
  ]);
  const second = log.append([{ partition: partitions[1]!, batch: batchOf("d") }]);
  assert.deepEqual(await first, [
    { baseOffset: 0, lastOffset: 0, duplicate: false },
    { baseOffset: 0, lastOffset: 1, duplicate: false },
  ]);
  assert.equal((await second)[0]!.baseOffset, 2);
  await log.close();
});

test("reads return whole batches from the one that contains the offset, within the byte bound", async () => {
  const { log } = await openFixture({ inPlaceBytesMin: 1_000_000 });
  const { partitions } = await log.createTopic("t");
  const partition = partitions[0]!;
  for (let at = 0; at < 4; at++) {
    await log.append([{ partition, batch: encodeBatch([recordOf(`x${at}`), recordOf(`y${at}`)]) }]);
  }
  const size = batchOf("xx").length + 9;
  for (const flush of [false, true]) {
    if (flush) await log.checkpoint();
    const one = await log.read(partition, 3, 1);
    assert.equal(readBatchHeader(one.buffers[0]!)!.baseOffset, 2, "the batch with offset 3");
    assert.equal(one.nextOffset, 4, "one batch comes even if it is over the bound");
    const two = await log.read(partition, 2, 2 * size);
    assert.equal(two.nextOffset, 6);
    assert.ok(two.bytes <= 2 * size);
    assert.deepEqual(await log.read(partition, 8, 1_000), { buffers: [], bytes: 0, nextOffset: 8 });
    await assert.rejects(log.read(partition, 9, 1_000), code("offset-out-of-range"));
  }
  await log.close();
});

test("appends, flushes, trims and restarts in any order read like a plain list", async () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ append: fc.integer({ min: 1, max: 1_200 }) }) },
    { weight: 1, arbitrary: fc.constant({ checkpoint: true }) },
    { weight: 1, arbitrary: fc.constant({ reopen: true }) },
    { weight: 1, arbitrary: fc.record({ trim: fc.nat(100) }) },
    {
      weight: 2,
      arbitrary: fc.record({ read: fc.nat(100), bytesMax: fc.integer({ min: 1, max: 5_000 }) }),
    },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      let { log, disk } = await openFixture();
      await log.createTopic("t", { config: { segmentBytes: 3_000 } });
      const model: string[] = [];
      for (const action of steps) {
        const partition = log.topic("t")!.partitions[0]!;
        if ("append" in action) {
          const value = `${model.length} `.padEnd(action.append, "v");
          model.push(value);
          await log.append([{ partition, batch: batchOf(value) }]);
        } else if ("checkpoint" in action) await log.checkpoint();
        else if ("trim" in action) {
          const range = partition.durableEnd - partition.logStart;
          const before = partition.logStart + Math.floor((range * action.trim) / 100);
          assert.equal(await log.deleteRecords(partition, before), before);
        } else if ("reopen" in action) {
          await log.close();
          ({ log, disk } = await openFixture({}, disk));
        } else {
          const range = partition.durableEnd - partition.logStart;
          const from = partition.logStart + Math.floor((range * action.read) / 100);
          const values = await valuesOf(log, partition, action.bytesMax, from);
          assert.deepEqual(values, model.slice(from));
        }
      }
      const partition = log.topic("t")!.partitions[0]!;
      assert.equal(partition.durableEnd, model.length);
      assert.deepEqual(await valuesOf(log, partition), model.slice(partition.logStart));
      await log.close();
    }),
    { numRuns: 60 },
  );
});

test("findTimestamp returns the first record at or after a time, in memory and in segments", async () => {
  const { log } = await openFixture();
  const { partitions } = await log.createTopic("t");
  const partition = partitions[0]!;
  for (let at = 0; at < 120; at++) {
    await log.append([{ partition, batch: batchOf(`v${at}`.padEnd(400), 1_000 + at * 10) }]);
  }
  for (const wanted of [0, 1_000, 1_001, 1_555, 2_190]) {
    const index = Math.max(0, Math.ceil((wanted - 1_000) / 10));
    assert.deepEqual(await log.findTimestamp(partition, wanted), {
      offset: index,
      timestamp: 1_000 + index * 10,
    });
  }
  assert.equal(await log.findTimestamp(partition, 2_191), undefined);
  await log.close();
});

test("retention by size and by age drops whole old segments, also after a restart", async () => {
  const { log, disk, clock } = await openFixture();
  const topic = await log.createTopic("t", {
    config: { segmentBytes: 2_000, retentionBytes: 5_000 },
  });
  const partition = topic.partitions[0]!;
  for (let at = 0; at < 20; at++) {
    await appendAll(log, partition, [`${at} `.padEnd(1_000)], clock.now());
  }
  assert.ok(log.applyRetention() > 0);
  assert.ok(partition.bytes >= 5_000 && partition.bytes < 5_000 + 2 * 2_200, `${partition.bytes}`);
  const { logStart } = partition;
  assert.ok(logStart > 10);
  await log.configureTopic(topic, { retentionMs: 1_000 });
  await log.checkpoint();
  await log.close();
  const again = await openFixture({}, disk);
  const reopened = again.log.topic("t")!.partitions[0]!;
  assert.equal(reopened.logStart, logStart);
  again.clock.advance(1_000_000);
  again.log.applyRetention();
  assert.equal(reopened.logStart, 20);
  await appendAll(again.log, reopened, ["next"]);
  assert.deepEqual(await valuesOf(again.log, reopened), ["next"]);
  await again.log.close();
  const files = await disk.list(`topics/${topic.id.toString("hex")}/0`);
  assert.deepEqual(
    files.filter((name) => name.startsWith("00000000000000000000-")),
    [],
  );
});

test("compaction keeps the last record of each key at its offset, like a plain map", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 6 }), fc.integer({ min: 0, max: 3 })), {
        minLength: 1,
        maxLength: 80,
      }),
      fc.integer({ min: 1, max: 10 }),
      async (writes, compactionKeysMax) => {
        const { log, disk, clock } = await openFixture({ compactionKeysMax });
        const topic = await log.createTopic("t", {
          config: { cleanupPolicy: "compact", segmentBytes: 2_000, deleteRetentionMs: 1_000 },
        });
        const partition = topic.partitions[0]!;
        const last = new Map<string, { offset: number; value: string }>();
        for (const [offset, [key, value]] of writes.entries()) {
          const text = value === 0 ? "" : `${value}`.padEnd(300);
          await appendAll(log, partition, [`k${key}=${text}`], clock.now());
          last.set(`k${key}`, { offset, value: text });
        }
        clock.advance(2_000);
        for (let passes = 0; (await log.compact(partition)).more; passes++) assert.ok(passes < 200);
        const expected = [...last]
          .filter(([, { value }]) => value !== "")
          .map(([key, { offset, value }]) => ({ key, offset, value }))
          .sort((a, b) => a.offset - b.offset);
        const found = async (from: typeof log) =>
          (await readAll(from, from.topic("t")!.partitions[0]!)).map((record) => ({
            key: String(record.key),
            offset: record.offset,
            value: String(record.value),
          }));
        assert.deepEqual(await found(log), expected);
        assert.equal(partition.durableEnd, writes.length);
        await appendAll(log, partition, ["after=1"]);
        await log.close();
        const again = await openFixture({}, disk);
        const offset = writes.length;
        assert.deepEqual(await found(again.log), [
          ...expected,
          { key: "after", offset, value: "1" },
        ]);
        await again.log.close();
      },
    ),
    { numRuns: 40 },
  );
});

test("compaction stays below the given offset", async () => {
  const { log } = await openFixture({ inPlaceBytesMin: 50 });
  const { partitions } = await log.createTopic("t", {
    config: { cleanupPolicy: "compact", segmentBytes: 1_024 },
  });
  const partition = partitions[0]!;
  for (let at = 0; at < 40; at++) await appendAll(log, partition, [`k=${at}`.padEnd(200)]);
  await log.compact(partition, 20);
  const offsets = (await readAll(log, partition)).map((record) => record.offset);
  assert.deepEqual(offsets.filter((offset) => offset >= 20).length, 20);
  assert.ok(offsets.filter((offset) => offset < 20).length < 5);
  await log.close();
});

test("compaction waits for a checkpoint that is writing the same partition", async () => {
  const disk = await openSlowDisk(["cleaned", 20], ["topics/", 200]);
  const log = await openLog({ disk, inPlaceBytesMin: 300 });
  const { partitions } = await log.createTopic("t", {
    config: { cleanupPolicy: "compact", segmentBytes: 1_024 },
  });
  const partition = partitions[0]!;
  for (let at = 0; at < 8; at++) await appendAll(log, partition, [`k=${at}`.padEnd(400)]);
  const compacted = log.compact(partition);
  await appendAll(log, partition, ["k=last"]);
  // The compacted segments are ready long before the checkpoint has written the last record.
  await Promise.all([compacted, log.checkpoint()]);
  assert.deepEqual((await valuesOf(log, partition)).at(-1), "k=last");
  await log.close();
});

test("a resent batch of a producer is a duplicate with its first offset, also after restarts", async () => {
  const { log, disk } = await openFixture();
  const partition = (await log.createTopic("t")).partitions[0]!;
  const send = (target: typeof log, baseSequence: number, producerEpoch = 0) =>
    target.append([
      {
        partition: target.topic("t")!.partitions[0]!,
        batch: batchOf("v", 1, { producerId: 4, producerEpoch, baseSequence }),
      },
    ]);
  const [first, inFlight] = await Promise.all([send(log, 0), send(log, 0)]);
  assert.deepEqual(first, [{ baseOffset: 0, lastOffset: 0, duplicate: false }]);
  assert.deepEqual(inFlight, [{ baseOffset: 0, lastOffset: 0, duplicate: true }]);
  for (let sequence = 1; sequence < 7; sequence++) await send(log, sequence);
  assert.equal(partition.durableEnd, 7);
  await assert.rejects(send(log, 9), code("out-of-order-sequence"));
  await assert.rejects(send(log, 0), code("duplicate-sequence"));
  const killed = await openFixture(
    {},
    disk.kill(new (await import("../simulation/random.ts")).Random(1)),
  );
  assert.equal((await send(killed.log, 6))[0]!.duplicate, true);
  assert.equal((await send(killed.log, 7))[0]!.baseOffset, 7);
  assert.equal((await send(killed.log, 0, 1))[0]!.baseOffset, 8);
  await assert.rejects(send(killed.log, 8), code("producer-fenced"));
  await killed.log.close();
  const closed = await openFixture({}, killed.disk);
  assert.equal((await send(closed.log, 0, 1))[0]!.duplicate, true);
  await closed.log.close();
  await log.close();
});

test("invalid batches, names and settings are rejected and change nothing", async () => {
  const { log } = await openFixture({ batchBytesMax: 500 });
  const partition = (await log.createTopic("t")).partitions[0]!;
  const broken = batchOf("v");
  broken[broken.length - 1] = 99;
  await assert.rejects(log.append([{ partition, batch: broken }]), code("invalid-batch"));
  const large = { partition, batch: batchOf("v".repeat(500)) };
  await assert.rejects(log.append([large]), code("too-large"));
  await assert.rejects(log.append([{ ...large, verified: true }]), code("too-large"));
  await assert.rejects(log.createTopic("t"), code("topic-exists"));
  await assert.rejects(log.createTopic(""), code("invalid-argument"));
  await assert.rejects(log.createTopic("n".repeat(1_025)), code("invalid-argument"));
  await assert.rejects(log.createTopic("u", { partitions: 0 }), code("invalid-argument"));
  const config = { retentionMs: -2 };
  await assert.rejects(log.createTopic("u", { config }), code("invalid-argument"));
  await assert.rejects(log.deleteRecords(partition, 1), code("offset-out-of-range"));
  assert.equal(partition.durableEnd, 0);
  await log.close();
});

test("a deleted topic disappears immediately, its name can be reused, and its files are removed", async () => {
  const { log, disk } = await openFixture();
  const topic = await log.createTopic("t");
  const partition = topic.partitions[0]!;
  await appendAll(log, partition, ["a".repeat(2_000)]);
  await log.checkpoint();
  await log.deleteTopic(topic);
  await assert.rejects(log.append([{ partition, batch: batchOf("b") }]), code("unknown-topic"));
  await assert.rejects(log.read(partition, 0, 100), code("unknown-topic"));
  const next = await log.createTopic("t");
  assert.notDeepEqual(next.id, topic.id);
  assert.equal(next.partitions[0]!.durableEnd, 0);
  await log.checkpoint();
  assert.deepEqual(await disk.list("topics"), []);
  await log.close();
});

test("appends over the bound of pending bytes are refused until there is room", async () => {
  const { log } = await openFixture({ pendingBytesMax: 1_000 });
  const partition = (await log.createTopic("t")).partitions[0]!;
  const first = log.append([{ partition, batch: batchOf("v".repeat(1_000)) }]);
  await assert.rejects(log.append([{ partition, batch: batchOf("w") }]), code("overloaded"));
  await log.whenRoom();
  assert.ok(log.stats().pendingBytes <= 500);
  await first;
  await log.append([{ partition, batch: batchOf("w") }]);
  assert.equal(partition.durableEnd, 2);
  await log.close();
});

test("a second opening of the same folder is refused until the first is closed", async () => {
  const { log, disk } = await openFixture();
  await assert.rejects(openFixture({}, disk), code("locked"));
  await log.close();
  await (await openFixture({}, disk)).log.close();
});

test("partitions can be added, and a configuration survives a restart", async () => {
  const { log, disk } = await openFixture();
  const topic = await log.createTopic("t", { partitions: 1 });
  await log.addPartitions(topic, 2);
  await appendAll(log, topic.partitions[2]!, ["a"]);
  await log.configureTopic(topic, { retentionMs: 5 });
  const reopened = await openFixture(
    {},
    disk.kill(new (await import("../simulation/random.ts")).Random(1)),
  );
  const after = reopened.log.topic("t")!;
  assert.equal(after.partitions.length, 3);
  assert.deepEqual(await valuesOf(reopened.log, after.partitions[2]!), ["a"]);
  assert.equal(after.config.retentionMs, 5);
  assert.deepEqual(after.id, topic.id);
  await reopened.log.close();
  await log.close();
});
