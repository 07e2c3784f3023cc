// Single faults in the metadata files: no data is lost without a report, and no file is deleted.
import assert from "node:assert/strict";
import {
  cpSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { LogError, openLog, openNodeDisk, type Log, type LogEvent } from "../../src/index.ts";
import { appendAll, batchOf } from "../simulation/fixture.ts";
import { readAll } from "../simulation/read-all.ts";

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "platform-log-damage-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function listFiles(folder: string): string[] {
  return globSync("**/*.{log,journal,manifest}", { cwd: folder }).sort();
}

function flipBit(path: string, position: number): void {
  const bytes = readFileSync(path);
  bytes[position] = bytes[position]! ^ 0x10;
  writeFileSync(path, bytes);
}

async function valuesOf(log: Log): Promise<string[]> {
  const values: string[] = [];
  for (const topic of log.topics()) {
    for (const record of await readAll(log, topic.partitions[0]!))
      values.push(String(record.value));
  }
  return values.sort();
}

function needsRepair(error: unknown): boolean {
  return error instanceof LogError && error.code === "needs-repair";
}

const TOPIC_NAMES = Array.from({ length: 20 }, (_, at) => `topic${at}`);

/** Twenty topics with two messages each: one in a segment, one in the journal. Ends like a killed process. */
async function writeFolder(t: TestContext): Promise<{ folder: string; values: string[] }> {
  const live = makeFolder(t);
  const folder = makeFolder(t);
  const log = await openLog({ disk: openNodeDisk(live) });
  for (const [at, name] of TOPIC_NAMES.entries()) {
    const topic = await log.createTopic(name);
    await appendAll(log, topic.partitions[0]!, [`stored${at}`]);
  }
  await log.checkpoint();
  const values: string[] = [];
  for (const [at, topic] of [...log.topics()].entries()) {
    await appendAll(log, topic.partitions[0]!, [`recent${at}`]);
    values.push(`stored${at}`, `recent${at}`);
  }
  cpSync(live, folder, { recursive: true, filter: (path) => !path.endsWith("lock.db") });
  await log.close();
  return { folder, values: values.sort() };
}

test("a flipped bit in a manifest loses nothing, and the damaged copy is quarantined", async (t) => {
  // In the header, in the first frame, and twice in the last one, without which the copy would be an older generation.
  for (const position of [5, 1040, 2000, -1]) {
    const { folder, values } = await writeFolder(t);
    const path = globSync("manifest/*", { cwd: folder }).sort()[0]!;
    const file = join(folder, path);
    flipBit(file, position < 0 ? readFileSync(file).length - 2 : position);
    const events: LogEvent[] = [];
    const log = await openLog({
      disk: openNodeDisk(folder),
      onEvent: (event) => events.push(event),
    });
    assert.deepEqual(await valuesOf(log), values);
    assert.deepEqual(log.recovery.quarantined, []);
    assert.deepEqual(
      log.recovery.healed.map((damage) => damage.file),
      [path],
    );
    assert.equal(events.filter((event) => event.kind === "healed").length, 1);
    await log.close();
    assert.equal(globSync("manifest/*", { cwd: folder }).length, 2, "there are two copies again");
    const again = await openLog({ disk: openNodeDisk(folder) });
    assert.deepEqual(again.recovery.healed, []);
    assert.deepEqual(await valuesOf(again), values);
    await again.close();
  }
});

test("without a usable manifest the catalogue is rebuilt from segments and journal", async (t) => {
  for (const fault of [(file: string) => flipBit(file, 2000), (file: string) => rmSync(file)]) {
    const { folder, values } = await writeFolder(t);
    for (const path of globSync("manifest/*", { cwd: folder })) fault(join(folder, path));
    const log = await openLog({ disk: openNodeDisk(folder) });
    assert.deepEqual(await valuesOf(log), values);
    assert.ok(
      log.recovery.quarantined.some(({ file }) => file === "manifest"),
      "it is reported",
    );
    assert.deepEqual([...log.topics()].map(({ name }) => name).sort(), [...TOPIC_NAMES].sort());
    const before = log.topic("topic3")!.partitions[0]!;
    await appendAll(log, before, ["later"]);
    await log.close();
    const again = await openLog({ disk: openNodeDisk(folder) });
    assert.deepEqual(await valuesOf(again), [...values, "later"].sort());
    assert.deepEqual(again.recovery.quarantined, []);
    await again.close();
  }
});

test("a rebuilt catalogue has own and compacted segments, producers and log starts", async (t) => {
  const live = makeFolder(t);
  const folder = makeFolder(t);
  const options = { inPlaceBytesMin: 1_000 };
  const log = await openLog({ disk: openNodeDisk(live), ...options });
  const config = { segmentBytes: 3_000 };
  const plain = await log.createTopic("plain", { partitions: 3, config });
  const compact = await log.createTopic("compact", { config: { cleanupPolicy: "compact" } });
  const [first, second] = [plain.partitions[0]!, plain.partitions[1]!];
  for (let at = 0; at < 10; at++) {
    await appendAll(log, first, [`${at} `.padEnd(1_200, "x")]);
    await appendAll(log, compact.partitions[0]!, [`k${at % 3}=${at}`]);
    if (at % 4 === 3) await log.checkpoint();
  }
  const sequence = { producerId: 5, producerEpoch: 0, baseSequence: 0 };
  await log.append([{ partition: second, batch: batchOf("p", 3, sequence) }]);
  await log.compact(compact.partitions[0]!);
  await log.deleteRecords(first, 3);
  await log.checkpoint();
  await appendAll(log, first, ["tail"]);
  const read = async (from: Log) => {
    const all = [];
    for (const name of ["plain", "compact"]) {
      for (const { logStart, durableEnd, index } of from.topic(name)!.partitions) {
        const records = await readAll(from, from.topic(name)!.partitions[index]!);
        all.push({
          name,
          index,
          logStart,
          durableEnd,
          records: records.map((r) => String(r.value)),
        });
      }
    }
    return all;
  };
  const expected = await read(log);
  cpSync(live, folder, { recursive: true, filter: (path) => !path.endsWith("lock.db") });
  await log.close();
  for (const path of globSync("manifest/*", { cwd: folder })) rmSync(join(folder, path));
  const rebuilt = await openLog({ disk: openNodeDisk(folder), ...options });
  assert.deepEqual(await read(rebuilt), expected);
  const again = rebuilt.topic("plain")!;
  assert.deepEqual(again.config, plain.config);
  assert.deepEqual(again.id, plain.id);
  const [result] = await rebuilt.append([
    { partition: again.partitions[1]!, batch: batchOf("p", 3, sequence) },
  ]);
  assert.equal(result!.duplicate, true);
  await rebuilt.close();
});

test("segments of version 1 have no description: without a manifest the log is not opened", async (t) => {
  const folder = makeFolder(t);
  cpSync(join(import.meta.dirname, "../fixtures/version-1"), folder, { recursive: true });
  flipBit(join(folder, "manifest/0000000000000001.manifest"), 100);
  const files = listFiles(folder);
  await assert.rejects(openLog({ disk: openNodeDisk(folder) }), needsRepair);
  assert.deepEqual(listFiles(folder), files);
});

test("a flipped bit in a journal's header loses nothing", async (t) => {
  for (const position of [5, 20, 530]) {
    const { folder, values } = await writeFolder(t);
    const [path] = globSync("journal/*.journal", { cwd: folder });
    flipBit(join(folder, path!), position);
    const log = await openLog({ disk: openNodeDisk(folder) });
    assert.deepEqual(await valuesOf(log), values);
    assert.deepEqual(
      log.recovery.healed.map((damage) => damage.file),
      [path],
    );
    await log.close();
  }
});

test("a journal file that is missing, empty or has no header is never treated as new", async (t) => {
  const faults = [
    (file: string) => [5, 530].forEach((position) => flipBit(file, position)),
    (file: string) => truncateSync(file, 0),
    (file: string) => truncateSync(file, 700),
    (file: string) => rmSync(file),
  ];
  for (const fault of faults) {
    const { folder } = await writeFolder(t);
    const [path] = globSync("journal/*.journal", { cwd: folder });
    fault(join(folder, path!));
    const files = listFiles(folder);
    await assert.rejects(openLog({ disk: openNodeDisk(folder) }), needsRepair);
    assert.deepEqual(listFiles(folder), files, "nothing was removed");
  }
});

test("damage to the last acknowledged entry is reported, since the mark covers it", async (t) => {
  const live = makeFolder(t);
  const folder = makeFolder(t);
  const log = await openLog({ disk: openNodeDisk(live) });
  const partition = (await log.createTopic("t")).partitions[0]!;
  await appendAll(log, partition, ["first"]);
  await appendAll(log, partition, ["last"]);
  const mark = join(live, "journal/durable.mark");
  const before = readFileSync(mark);
  for (
    const start = Date.now();
    readFileSync(mark).equals(before) && Date.now() - start < 20_000;
  ) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  cpSync(live, folder, { recursive: true, filter: (path) => !path.endsWith("lock.db") });
  await log.close();
  const [path] = globSync("journal/*.journal", { cwd: folder });
  const file = join(folder, path!);
  flipBit(file, readFileSync(file).length - 3);
  const after = await openLog({ disk: openNodeDisk(folder) });
  assert.deepEqual(await valuesOf(after), ["first"]);
  assert.deepEqual(
    after.recovery.quarantined.map((damage) => damage.file),
    [path],
  );
  assert.equal(after.stats().damageFound, 1);
  assert.equal(after.stats().quarantineFiles, 1, "the damaged group is kept");
  await after.close();
});

test("unreferenced files are moved to the quarantine, up to its bound", async (t) => {
  const { folder, values } = await writeFolder(t);
  const unknown = "shared/0000000000000000.log";
  const topic = "topics/00112233445566778899aabbccddeeff/0/00000000000000000000-0.log";
  writeFileSync(join(folder, unknown), "somebody's");
  const disk = openNodeDisk(folder);
  await disk.makeFolder("topics/00112233445566778899aabbccddeeff/0");
  writeFileSync(join(folder, topic), batchOf("somebody's too"));
  await assert.rejects(
    openLog({ disk, quarantineBytesMax: 5 }),
    (error) => error instanceof LogError && error.code === "quarantine-full",
  );
  const log = await openLog({ disk });
  assert.deepEqual(log.recovery.setAside, [unknown, topic].toSorted());
  assert.equal(log.stats().quarantineFiles, 2);
  assert.deepEqual(await valuesOf(log), values);
  await log.close();
  assert.deepEqual(globSync("quarantine/*", { cwd: folder }).sort(), [
    "quarantine/shared-0000000000000000.log",
    `quarantine/${topic.replaceAll("/", "-")}`,
  ]);
});
