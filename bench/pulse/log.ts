// The log alone: durable appends, fetches from the page cache, recovery after kill -9.
//
//   node bench/pulse/log.ts [gigabytes for the recovery, 2 by default]
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openLog, openNodeDisk, type Log, type TopicView } from "@platform/log";
import { crc32c, crc32cTable, encodeBatch } from "@platform/log/batch";

const megabyte = 1_000_000;
const recordBytes = 1_024;

function makeBatch(records: number): Buffer {
  const value = Buffer.alloc(recordBytes - 20, "v");
  const headers: [] = [];
  return encodeBatch(
    Array.from({ length: records }, () => ({ key: null, value, headers, timestamp: Date.now() })),
  );
}

/** Appends about `bytes` with `inFlight` appends under way; the log checks each batch's CRC. */
async function produce(
  log: Log,
  topic: TopicView,
  options: { records: number; inFlight: number; bytes: number },
): Promise<{ megabytesPerSecond: number; p99Ms: number }> {
  const template = makeBatch(options.records);
  let left = Math.ceil(options.bytes / template.length);
  const latencies: number[] = [];
  const started = performance.now();
  const lane = async (index: number) => {
    const partition = topic.partitions[index % topic.partitions.length]!;
    while (left-- > 0) {
      // A fresh buffer each, as from a socket; the log keeps what it is given.
      const batch = Buffer.allocUnsafeSlow(template.length);
      template.copy(batch);
      const begun = performance.now();
      await log.append([{ partition, batch }]);
      latencies.push(performance.now() - begun);
    }
  };
  await Promise.all(Array.from({ length: options.inFlight }, (_, index) => lane(index)));
  const seconds = (performance.now() - started) / 1000;
  latencies.sort((a, b) => a - b);
  return {
    megabytesPerSecond: options.bytes / megabyte / seconds,
    p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? 0,
  };
}

async function fetchAll(log: Log, topic: TopicView): Promise<number> {
  let bytes = 0;
  const started = performance.now();
  for (const partition of topic.partitions) {
    for (let offset = partition.logStart; offset < partition.durableEnd;) {
      const read = await log.read(partition, offset, 1_048_576);
      bytes += read.bytes;
      offset = read.nextOffset;
    }
  }
  return bytes / megabyte / ((performance.now() - started) / 1000);
}

function row(name: string, value: string): void {
  console.log(`${name.padEnd(64)} ${value}`);
}

async function measureProduce(folder: string): Promise<void> {
  for (const partitions of [1, 4]) {
    for (const records of [1, 16, 100]) {
      const log = await openLog({ disk: openNodeDisk(join(folder, `p${partitions}-${records}`)) });
      const topic = await log.createTopic("bench", { partitions });
      const bytes = records === 1 ? 50 * megabyte : 500 * megabyte;
      const inFlight = records === 1 ? 256 : 64;
      const { megabytesPerSecond, p99Ms } = await produce(log, topic, { records, inFlight, bytes });
      const name = `produce, ${records} × 1 KB a batch, ${partitions} partitions, ${inFlight} in flight`;
      row(name, `${megabytesPerSecond.toFixed(0)} MB/s, p99 ${p99Ms.toFixed(1)} ms`);
      if (records > 1) {
        row(`fetch, the same, 1 MiB a read`, `${(await fetchAll(log, topic)).toFixed(0)} MB/s`);
      }
      await log.close();
    }
  }
}

async function measureRecovery(folder: string, gigabytes: number): Promise<void> {
  const path = join(folder, "recovery");
  const child = spawn(process.execPath, [import.meta.filename, "write", path, String(gigabytes)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await once(child, "close");
  const started = performance.now();
  const log = await openLog({ disk: openNodeDisk(path) });
  const openMs = performance.now() - started;
  const topic = log.topic("bench")!;
  const partition = topic.partitions[0]!;
  const readStarted = performance.now();
  await log.read(partition, partition.durableEnd - 1, 1_000);
  const readMs = performance.now() - readStarted;
  let bytes = 0;
  for (const each of topic.partitions) bytes += each.bytes;
  const name = `open after kill -9 with ${(bytes / 1e9).toFixed(1)} GB`;
  row(name, `${openMs.toFixed(0)} ms, first read ${readMs.toFixed(0)} ms`);
  await log.close();
}

function measureChecksum(): void {
  for (const [name, compute] of [
    ["native", crc32c],
    ["table", crc32cTable],
  ] as const) {
    const bytes = Buffer.alloc(100_000, 7);
    const rounds = name === "native" ? 20_000 : 2_000;
    const started = performance.now();
    for (let round = 0; round < rounds; round++) compute(bytes);
    const seconds = (performance.now() - started) / 1000;
    row(`CRC32C, ${name}, 100 KB`, `${((rounds * bytes.length) / 1e9 / seconds).toFixed(2)} GB/s`);
  }
}

const [mode, path, size] = process.argv.slice(2);
if (mode === "write") {
  const log = await openLog({ disk: openNodeDisk(path!) });
  const topic = await log.createTopic("bench", { partitions: 8 });
  await produce(log, topic, { records: 100, inFlight: 64, bytes: Number(size) * 1e9 });
  console.log("written");
  setInterval(() => undefined, 1_000);
} else {
  const folder = mkdtempSync(join(tmpdir(), "platform-bench-log-"));
  try {
    measureChecksum();
    await measureProduce(folder);
    await measureRecovery(folder, Number(mode ?? 2));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
