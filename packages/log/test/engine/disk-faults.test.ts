// Full disks, failing disks, and damaged files.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@platform/testing/wait";
import { LogError, type LogEvent, type PartitionView } from "../../src/index.ts";
import { appendAll, batchOf, openFixture } from "../simulation/fixture.ts";
import { Random } from "../simulation/random.ts";
import { readAll } from "../simulation/read-all.ts";
import { History, judge } from "../simulation/history.ts";
import { openSimulated, runWorkload } from "../simulation/workload.ts";
import { SimClock, SimDisk } from "../simulation/sim-disk.ts";

function code(expected: string) {
  return (error: unknown) => error instanceof LogError && error.code === expected;
}

test("a full disk fails waiting appends, reads continue, and appends work again once there is room", async () => {
  const { log, disk } = await openFixture();
  const partition = (await log.createTopic("t")).partitions[0]!;
  await appendAll(log, partition, ["kept"]);
  disk.capacity = 0;
  const results = await Promise.allSettled(
    ["x", "y".repeat(2_000)].map((text) => log.append([{ partition, batch: batchOf(text) }])),
  );
  for (const result of results) {
    assert.equal(result.status, "rejected");
    assert.ok(code("disk-full")(result.reason));
  }
  assert.equal(partition.durableEnd, 1);
  assert.equal((await readAll(log, partition)).length, 1);
  disk.capacity = Number.POSITIVE_INFINITY;
  await appendAll(log, partition, ["after"]);
  const values = (await readAll(log, partition)).map((record) => String(record.value));
  assert.deepEqual(values, ["kept", "after"]);
  await log.close();
});

function countKinds(events: readonly LogEvent[]): { checkpoints: number; failures: number } {
  const count = (wanted: LogEvent["kind"]) => events.filter(({ kind }) => kind === wanted).length;
  return { checkpoints: count("checkpoint"), failures: count("checkpoint-failed") };
}

test("appends stop at the reserve; deletion and retention use it and free space", async () => {
  const events: LogEvent[] = [];
  const reserveBytes = 100_000;
  const { log, disk } = await openFixture({
    reserveBytes,
    onEvent: (event) => events.push(event),
  });
  const config = { segmentBytes: 20_000, retentionBytes: -1 };
  const topics = await Promise.all(
    ["deleted", "trimmed"].map((name) => log.createTopic(name, { config })),
  );
  const [deleted, trimmed] = topics.map(({ partitions }) => partitions[0]!);
  const fill = async (partition: PartitionView) => {
    for (;;) await log.append([{ partition, batch: batchOf("x".repeat(2_000)) }]);
  };
  const isOpen = () => !log.stats().diskFull;
  for (let count = 0; count < 200; count++) {
    await log.append([{ partition: deleted!, batch: batchOf("x".repeat(2_000)) }]);
  }
  await log.checkpoint();
  disk.capacity = 1_000_000;
  await sleep(1_100);
  await assert.rejects(fill(trimmed!), code("disk-full"));
  assert.equal(log.stats().diskFull, true);
  assert.ok((await disk.space()).freeBytes > reserveBytes / 2);
  await assert.rejects(log.createTopic("more"), code("disk-full"));
  await log.append([{ partition: trimmed!, batch: batchOf("ack") }], { mayUseReserve: true });
  const end = trimmed!.durableEnd;
  const { checkpoints } = countKinds(events);
  await log.checkpoint();
  assert.deepEqual(countKinds(events), { checkpoints: checkpoints + 1, failures: 0 });

  await log.deleteTopic(topics[0]!);
  await waitFor(isOpen);
  await assert.rejects(fill(trimmed!), code("disk-full"));
  assert.ok(trimmed!.durableEnd > end);

  await log.configureTopic(topics[1]!, { retentionBytes: 10_000 });
  await log.reclaimSpace();
  await waitFor(isOpen);
  await appendAll(log, trimmed!, ["room"]);
  const kinds = events.map(({ kind }) => kind).filter((kind) => kind.startsWith("disk-"));
  assert.deepEqual(kinds, ["disk-full", "disk-has-room", "disk-full", "disk-has-room"]);
  await log.close();
});

test("a failed sync stops writing until restart and is never retried; reads continue", async () => {
  const events: LogEvent[] = [];
  const { log, disk } = await openFixture({ onEvent: (event) => events.push(event) });
  const partition = (await log.createTopic("t")).partitions[0]!;
  await appendAll(log, partition, ["kept"]);
  let syncs = 0;
  disk.fault = (operation) => (operation === "sync" && ++syncs > 0 ? "EIO" : undefined);
  await assert.rejects(log.append([{ partition, batch: batchOf("x") }]), code("disk-failed"));
  await assert.rejects(log.append([{ partition, batch: batchOf("y") }]), code("disk-failed"));
  assert.equal(syncs, 1);
  assert.equal(log.stats().state, "read-only");
  assert.equal((await readAll(log, partition)).length, 1);
  assert.ok(events.some((event) => event.kind === "group-failed" && event.fatal));
  await log.close();
  disk.fault = () => undefined;
  const after = await openFixture({}, disk.crash(new Random(3)));
  const values = (await readAll(after.log, after.log.topic("t")!.partitions[0]!)).map((record) =>
    String(record.value),
  );
  assert.equal(values[0], "kept");
  await after.log.close();
});

test("disks that fill up and fail at random lose no acknowledged data", async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = new Random(seed);
    const disk = new SimDisk(random);
    const clock = new SimClock();
    const history = new History();
    const log = await openSimulated(disk, clock, random);
    const faults = new Random(seed * 31);
    const fails = seed % 3 === 0;
    disk.onOperation = () => {
      if (faults.chance(0.02)) disk.capacity = faults.chance(0.5) ? 20_000 : 0;
      else if (faults.chance(0.05)) disk.capacity = Number.POSITIVE_INFINITY;
    };
    if (fails) {
      disk.fault = (operation) =>
        operation !== "read" && faults.chance(0.004) ? "EIO" : undefined;
    }
    await runWorkload(log, random, clock, history, 80);
    disk.onOperation = () => undefined;
    disk.fault = () => undefined;
    disk.capacity = Number.POSITIVE_INFINITY;
    const crashed = disk.crash(faults);
    const moment = history.moment();
    await log.close();
    for (const state of [crashed, disk.kill(faults)]) {
      try {
        const recovered = await openSimulated(state, clock, random);
        await judge(recovered, moment);
        await recovered.close();
      } catch (error) {
        throw new Error(`seed ${seed}`, { cause: error });
      }
    }
  }
});

test("damage below the durable end is quarantined and reported, and raises the leader epoch", async () => {
  const { log, disk } = await openFixture({
    inPlaceBytesMin: 1_000_000,
    journalFileBytes: 1_000_000,
  });
  const topic = await log.createTopic("t", { partitions: 2 });
  for (let at = 0; at < 10; at++) await appendAll(log, topic.partitions[at % 2]!, [`value${at}`]);
  const killed = disk.kill(new Random(1));
  const path = "journal/0000000000000001.journal";
  killed.damage(path, killed.bytesOf(path).indexOf("value4"));
  const events: LogEvent[] = [];
  const after = await openFixture({ onEvent: (event) => events.push(event) }, killed);
  assert.equal(after.log.recovery.quarantined.length, 1);
  assert.equal(after.log.recovery.leaderEpoch, 1);
  assert.equal(events.filter((event) => event.kind === "quarantined").length, 1);
  assert.equal((await killed.list("quarantine")).length, 1);
  const partition = after.log.topic("t")!.partitions[0]!;
  const values = (await readAll(after.log, partition)).map((record) => String(record.value));
  assert.deepEqual(values, ["value0", "value2", "value6", "value8"]);
  await appendAll(after.log, partition, ["next"]);
  assert.deepEqual(partition.epochs, [
    { epoch: 0, startOffset: 0 },
    { epoch: 1, startOffset: 5 },
  ]);
  await after.log.close();
  const again = await openFixture({}, killed);
  assert.equal(again.log.recovery.leaderEpoch, 1);
  assert.deepEqual(again.log.recovery.quarantined, []);
  await again.log.close();
  await log.close();
});

test("a damaged last group is a torn tail: it is cut off and not reported", async () => {
  const { log, disk } = await openFixture({ inPlaceBytesMin: 1_000_000 });
  const partition = (await log.createTopic("t")).partitions[0]!;
  await appendAll(log, partition, ["one"]);
  await appendAll(log, partition, ["two"]);
  const killed = disk.kill(new Random(1));
  const path = "journal/0000000000000001.journal";
  killed.damage(path, killed.bytesOf(path).indexOf("two"));
  const after = await openFixture({}, killed);
  assert.deepEqual(after.log.recovery.quarantined, []);
  assert.ok(after.log.recovery.cutBytes > 0);
  assert.equal(after.log.topic("t")!.partitions[0]!.durableEnd, 1);
  await after.log.close();
  await log.close();
});

test("a damaged or missing index is rebuilt from the segment", async () => {
  const { log, disk } = await openFixture();
  const topic = await log.createTopic("t", { config: { segmentBytes: 1_000_000 } });
  const partition = topic.partitions[0]!;
  for (let at = 0; at < 100; at++) await appendAll(log, partition, [`${at} `.padEnd(1_000)]);
  await log.close();
  const path = `topics/${topic.id.toString("hex")}/0/00000000000000000000-0.index`;
  for (const spoil of [async () => disk.damage(path, 40), () => disk.remove(path)]) {
    await spoil();
    const again = await openFixture({}, disk);
    const read = await again.log.read(again.log.topic("t")!.partitions[0]!, 77, 500);
    assert.ok(read.buffers[0]!.includes("77 "));
    await again.log.close();
  }
});
