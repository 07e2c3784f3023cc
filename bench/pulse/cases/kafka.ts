// The Kafka face: durable Produce and Fetch from the page cache, over TCP against the broker as users start it.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { REPOSITORY } from "../../gate/runtime.ts";
import { Workspace, type BenchCase } from "../../harness/case.ts";
import { readTreeUsage } from "../../harness/usage.ts";
import { findFreePort, startPinned, waitForPort } from "../../harness/process.ts";
import type { Row } from "../../harness/report.ts";
import { askMetadata, fetchAll, produceAll, type KafkaLoad } from "../kafka-load.ts";

const megabyte = 1_000_000;
const topic = "bench";

const loads: readonly (Omit<KafkaLoad, "port" | "topic"> & { bytes: number })[] = [
  { connections: 1, records: 100, inFlight: 5, bytes: 400 * megabyte },
  { connections: 4, records: 100, inFlight: 5, bytes: 800 * megabyte },
  { connections: 4, records: 900, inFlight: 5, bytes: 800 * megabyte },
  { connections: 4, records: 16, inFlight: 5, bytes: 200 * megabyte },
];

/** What Kafka clients can write durably, and read. */
export const kafka: BenchCase = {
  name: "kafka",
  title: "The Kafka face, over TCP",
  run: async (context) => {
    await using workspace = new Workspace();
    const rows: Row[] = loads.map((load) => ({
      name: `${load.records} × 1 KB a batch, ${load.connections} connections, ${load.inFlight} in flight`,
      isOurs: true,
      version: "",
      rounds: [],
    }));
    for (let round = 1; round <= context.rounds; round++) {
      for (const [index, load] of loads.entries()) {
        const folder = join(workspace.folder, `${round}-${index}`);
        const figures = await measure(folder, load, workspace, context.cores.all);
        rmSync(folder, { recursive: true, force: true });
        rows[index]!.rounds.push(figures);
        const shown = `${figures["produceMbS"]!.toFixed(0)} and ${figures["fetchMbS"]!.toFixed(0)} MB/s`;
        context.say(`  ${round}/${context.rounds} ${rows[index]!.name}: ${shown}`);
      }
    }
    return {
      work: "Produce with acks −1 in mode `group`: each answer waits for the fdatasync that covers it. Each connection writes to a partition of its own, then reads all of it once, 1 MiB a Fetch, from the page cache. Load and broker share the cores.",
      columns: [
        { key: "produceMbS", title: "produce MB/s", digits: 0 },
        { key: "produceP99Ms", title: "produce p99 ms", digits: 1 },
        { key: "fetchMbS", title: "fetch MB/s", digits: 0 },
        { key: "fetchP99Ms", title: "fetch p99 ms", digits: 1 },
        { key: "memoryMb", title: "memory after MB", digits: 0 },
      ],
      rows,
      ratioColumns: [],
      goals: [],
      remarks: [],
    };
  },
};

async function measure(
  folder: string,
  { bytes, ...load }: (typeof loads)[number],
  workspace: Workspace,
  cores: string,
): Promise<Record<string, number>> {
  const [port, httpPort] = [await findFreePort(), await findFreePort()];
  const broker = workspace.keep(
    startPinned({
      name: "pulse",
      command: process.execPath,
      args: [join(REPOSITORY, "bin/platform-pulse.js")],
      cores,
      env: {
        PLATFORM_PULSE_HTTP_ADDR: `127.0.0.1:${httpPort}`,
        PLATFORM_PULSE_KAFKA_ADDR: `127.0.0.1:${port}`,
        PLATFORM_PULSE_DATA_DIR: folder,
      },
    }),
  );
  await waitForPort(broker, port);
  await createTopic(httpPort, load.connections);
  const whole = { ...load, port, topic };
  await askMetadata(port, topic);
  await produceAll(whole, 20 * megabyte);
  const produced = await produceAll(whole, bytes);
  const fetched = await fetchAll(whole);
  const { pssBytes } = readTreeUsage(broker.pid);
  await broker.stop();
  return {
    produceMbS: produced.megabytesPerSecond,
    produceP99Ms: produced.p99Ms,
    fetchMbS: fetched.megabytesPerSecond,
    fetchP99Ms: fetched.p99Ms,
    memoryMb: pssBytes / megabyte,
  };
}

async function createTopic(httpPort: number, partitions: number): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${httpPort}/api/v1/topics`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: topic, partitions }),
  });
  if (!answer.ok) throw new Error(`the topic was not made: ${answer.status}`);
}
