// The Kafka listener: durable Produce, and Fetch from the page cache, over TCP against the broker as users start it.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import type { Row } from "../../harness/report.ts";
import { runRounds } from "../../harness/rounds.ts";
import { readTreeUsage } from "../../harness/usage.ts";
import { OURS_ON_NODE } from "../../harness/build.ts";
import { makePlatformPulse } from "../brokers/platform-pulse.ts";
import { loadOnce } from "../contest.ts";

const MEGABYTE = 1_000_000;
const WARM_UP_SECONDS = 1;

interface Shape {
  connections: number;
  /** Records of 1 KB per batch. */
  records: number;
  /** Produce requests in flight per connection. */
  window: number;
}

const SHAPES: readonly Shape[] = [
  { connections: 1, records: 100, window: 5 },
  { connections: 4, records: 100, window: 5 },
  { connections: 4, records: 900, window: 5 },
  { connections: 4, records: 16, window: 5 },
];

/** Throughput of Kafka clients: durable writes, and reads. */
export const kafka: BenchCase = {
  name: "kafka",
  title: "Kafka listener, over TCP",
  run: async (context) => {
    const entrants = SHAPES.map((shape) => {
      const { records, connections, window } = shape;
      const name = `${records} × 1 KB per batch, ${connections} connections, ${window} in flight`;
      const row: Row = { name, isOurs: true, version: "", rounds: [] };
      return { shape, row };
    });
    await runRounds(
      context,
      entrants,
      ({ shape }) => measure(context, shape),
      ({ produceMbS, fetchMbS }) => `${produceMbS!.toFixed(0)} and ${fetchMbS!.toFixed(0)} MB/s`,
    );
    return {
      work: "Produce with acks −1 in mode `group`: each response waits for the fdatasync that covers it. Each connection writes to its own partition, then reads it from the page cache with Fetch requests of 1 MiB, starting over at the end. A new broker each time; load and broker share the cores.",
      columns: [
        { key: "produceMbS", title: "produce MB/s", digits: 0 },
        { key: "produceP99Ms", title: "produce p99 ms", digits: 1 },
        { key: "fetchMbS", title: "fetch MB/s", digits: 0 },
        { key: "fetchP99Ms", title: "fetch p99 ms", digits: 1 },
        { key: "memoryMb", title: "memory after MB", digits: 0 },
      ],
      rows: entrants.map(({ row }) => row),
      ratioColumns: [],
      goals: [],
    };
  },
};

async function measure(context: BenchContext, shape: Shape): Promise<Record<string, number>> {
  await using workspace = new Workspace();
  const folder = join(workspace.folder, "broker");
  mkdirSync(folder);
  const broker = makePlatformPulse(OURS_ON_NODE);
  const running = await broker.start({ cores: context.cores.all, folder, workspace });
  const produce = { ...shape, broker, protocol: "kafka" } as const;
  await loadOnce(context, produce, running, WARM_UP_SECONDS);
  const produced = await loadOnce(context, produce, running, context.seconds);
  const fetch = { ...shape, broker, protocol: "fetch", window: 1 } as const;
  const fetched = await loadOnce(context, fetch, running, context.seconds);
  return {
    produceMbS: produced.mbPerS,
    produceP99Ms: produced.p99Ms,
    fetchMbS: fetched.mbPerS,
    fetchP99Ms: fetched.p99Ms,
    memoryMb: readTreeUsage(running.pid).pssBytes / MEGABYTE,
  };
}
