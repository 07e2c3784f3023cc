// The log alone: durable appends, fetches from the page cache, recovery after kill -9.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { openLog, openNodeDisk, type Log, type TopicView } from "@platform/log";
import { Workspace, type BenchCase } from "../../harness/case.ts";
import type { Row } from "../../harness/report.ts";
import { runRounds } from "../../harness/rounds.ts";
import { produce, type LogLoad } from "../log-load.ts";

const megabyte = 1_000_000;
const recoveryBytes = 10_000 * megabyte;
const loadProgram = new URL("../log-load.ts", import.meta.url).pathname;

const loads: readonly (LogLoad & { partitions: number })[] = [
  { partitions: 1, records: 1, inFlight: 256, bytes: 25 * megabyte },
  { partitions: 1, records: 16, inFlight: 64, bytes: 250 * megabyte },
  { partitions: 1, records: 100, inFlight: 64, bytes: 250 * megabyte },
  { partitions: 4, records: 1, inFlight: 256, bytes: 25 * megabyte },
  { partitions: 4, records: 16, inFlight: 64, bytes: 250 * megabyte },
  { partitions: 4, records: 100, inFlight: 64, bytes: 250 * megabyte },
];

/** Throughput of the log without the broker. */
export const log: BenchCase = {
  name: "log",
  title: "The log alone, in one process",
  run: async (context) => {
    await using workspace = new Workspace();
    const entrants = loads.map((load) => {
      const { records, partitions, inFlight } = load;
      const name = `${records} × 1 KB per batch, ${partitions} partitions, ${inFlight} in flight`;
      const row: Row = { name, isOurs: true, version: "", rounds: [] };
      return { load, row };
    });
    const folder = join(workspace.folder, "log");
    await runRounds(
      context,
      entrants,
      ({ load }) => measureLoad(folder, load),
      ({ produceMbS }) => `${produceMbS!.toFixed(0)} MB/s`,
    );
    return {
      work: "Batches with their CRC checked, mode `group`: each append waits for the fdatasync that covers it. Fetches read all of it once, 1 MiB at a time, from the page cache.",
      columns: [
        { key: "produceMbS", title: "produce MB/s", digits: 0 },
        { key: "p99Ms", title: "produce p99 ms", digits: 1 },
        { key: "fetchMbS", title: "fetch MB/s", digits: 0 },
      ],
      rows: entrants.map(({ row }) => row),
      ratioColumns: [],
      goals: [],
      remarks: [await measureRecovery(join(workspace.folder, "recovery"))],
    };
  },
};

async function measureLoad(
  folder: string,
  load: LogLoad & { partitions: number },
): Promise<Record<string, number>> {
  const opened = await openLog({ disk: openNodeDisk(folder) });
  const topic = await opened.createTopic("bench", { partitions: load.partitions });
  const { megabytesPerSecond, p99Ms } = await produce(opened, topic, load);
  const fetchMbS = await fetchAll(opened, topic);
  await opened.close();
  rmSync(folder, { recursive: true, force: true });
  return { produceMbS: megabytesPerSecond, p99Ms, fetchMbS };
}

async function fetchAll(opened: Log, topic: TopicView): Promise<number> {
  let bytes = 0;
  const started = performance.now();
  for (const partition of topic.partitions) {
    for (let offset = partition.logStart; offset < partition.durableEnd;) {
      const read = await opened.read(partition, offset, 1_048_576);
      bytes += read.bytes;
      offset = read.nextOffset;
    }
  }
  return bytes / megabyte / ((performance.now() - started) / 1000);
}

async function measureRecovery(folder: string): Promise<string> {
  const child = spawn(process.execPath, [loadProgram, folder, String(recoveryBytes)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const closed = once(child, "close");
  await Promise.race([once(child.stdout, "data"), closed]);
  if (child.exitCode !== null) throw new Error(`${loadProgram} ended with ${child.exitCode}`);
  child.kill("SIGKILL");
  await closed;
  const started = performance.now();
  const opened = await openLog({ disk: openNodeDisk(folder) });
  const openMs = performance.now() - started;
  const topic = opened.topic("bench")!;
  const partition = topic.partitions[0]!;
  const readStarted = performance.now();
  await opened.read(partition, partition.durableEnd - 1, 1_000);
  const readMs = performance.now() - readStarted;
  let bytes = 0;
  for (const each of topic.partitions) bytes += each.bytes;
  await opened.close();
  const gigabytes = (bytes / 1e9).toFixed(1);
  return `- Opened after \`kill -9\` with ${gigabytes} GB in ${openMs.toFixed(0)} ms, first read ${readMs.toFixed(0)} ms`;
}
