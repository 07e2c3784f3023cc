// Appends to the log as fast as it accepts them. Run as a program, it fills a folder until it is killed.
//
//   node bench/pulse/log-load.ts FOLDER BYTES
import { openLog, openNodeDisk, type Log, type TopicView } from "@platform/log";
import { encodeBatch } from "@platform/log/batch";

const recordBytes = 1_024;

/** The appends: `inFlight` at a time, each of `records` × 1 KB. */
export interface LogLoad {
  records: number;
  inFlight: number;
  bytes: number;
}

/** Appends about `bytes`; the log checks each batch's CRC. */
export async function produce(
  log: Log,
  topic: TopicView,
  load: LogLoad,
): Promise<{ megabytesPerSecond: number; p99Ms: number }> {
  const template = makeBatch(load.records);
  let left = Math.ceil(load.bytes / template.length);
  const latencies: number[] = [];
  const started = performance.now();
  const lane = async (index: number) => {
    const partition = topic.partitions[index % topic.partitions.length]!;
    while (left-- > 0) {
      // A new buffer for each append, because the log takes ownership of it.
      const batch = Buffer.allocUnsafeSlow(template.length);
      template.copy(batch);
      const begun = performance.now();
      await log.append([{ partition, batch }]);
      latencies.push(performance.now() - begun);
    }
  };
  await Promise.all(Array.from({ length: load.inFlight }, (_, index) => lane(index)));
  const seconds = (performance.now() - started) / 1000;
  latencies.sort((a, b) => a - b);
  return {
    megabytesPerSecond: load.bytes / 1e6 / seconds,
    p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? 0,
  };
}

function makeBatch(records: number): Buffer {
  const value = Buffer.alloc(recordBytes - 20, "v");
  const headers: [] = [];
  return encodeBatch(
    Array.from({ length: records }, () => ({ key: null, value, headers, timestamp: Date.now() })),
  );
}

if (import.meta.main) {
  const [folder = "", bytes = "0"] = process.argv.slice(2);
  const log = await openLog({ disk: openNodeDisk(folder) });
  const topic = await log.createTopic("bench", { partitions: 8 });
  await produce(log, topic, { records: 100, inFlight: 64, bytes: Number(bytes) });
  console.log("written");
  setInterval(() => undefined, 1_000);
}
