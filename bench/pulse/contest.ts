// Runs brokers under the same load, alternating their rounds.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Workspace, type BenchContext } from "../harness/case.ts";
import { runPinned } from "../harness/process.ts";
import type { Row } from "../harness/report.ts";
import { runRounds } from "../harness/rounds.ts";
import { readTreeCpu } from "../harness/usage.ts";
import type { BenchBroker, RunningBroker } from "./brokers/broker.ts";
import type { LoadSummary, Protocol } from "./broker-load.ts";

const LOAD_PROGRAM = new URL("./broker-load.ts", import.meta.url).pathname;
const NOTE_CHARS_MAX = 200;

/** A broker and its load. */
export interface BrokerLoad {
  broker: BenchBroker;
  protocol: Protocol;
  connections: number;
  /** Requests in flight per connection. */
  window: number;
  /** Records per request. */
  records: number;
}

/** The figures of each round. */
export const BROKER_COLUMNS = [
  { key: "perS", title: "messages/s", digits: 0 },
  { key: "mbPerS", title: "MB/s", digits: 1 },
  { key: "cpuUs", title: "CPU µs/message", digits: 1 },
  { key: "p99Ms", title: "p99 ms", digits: 1 },
] as const;

/** Starts every broker on the test core, then alternates the rounds of their loads. */
export async function runBrokers(
  context: BenchContext,
  loads: readonly BrokerLoad[],
  prepare?: (running: RunningBroker) => Promise<void>,
): Promise<Row[]> {
  const byBroker = new Map(loads.map((load) => [load.broker, load]));
  return runContest(
    context,
    [...byBroker.keys()],
    (broker, running, seconds) => loadOnce(context, byBroker.get(broker)!, running, seconds),
    prepare,
  );
}

/** Starts every broker on the test core, warms it up for a second, then alternates their rounds. */
export async function runContest(
  context: BenchContext,
  brokers: readonly BenchBroker[],
  measure: (
    broker: BenchBroker,
    running: RunningBroker,
    seconds: number,
  ) => Promise<Record<string, number>>,
  prepare?: (running: RunningBroker) => Promise<void>,
): Promise<Row[]> {
  await using workspace = new Workspace();
  const entrants: { row: Row; broker: BenchBroker; running: RunningBroker }[] = [];
  const rows: Row[] = [];
  for (const [index, broker] of brokers.entries()) {
    const absence = broker.explainAbsence();
    const row: Row = { name: broker.name, isOurs: broker.isOurs, version: "", rounds: [] };
    rows.push(row);
    if (absence !== undefined) {
      row.note = absence;
      continue;
    }
    row.version = broker.readVersion();
    const folder = join(workspace.folder, String(index));
    mkdirSync(folder);
    try {
      const running = await broker.start({ cores: context.cores.test, folder, workspace });
      await prepare?.(running);
      entrants.push({ row, broker, running });
    } catch (error) {
      row.note = String(error).replaceAll(/\s+/g, " ").slice(0, NOTE_CHARS_MAX);
    }
  }
  for (const { broker, running } of entrants) await measure(broker, running, 1);
  await runRounds(
    context,
    entrants,
    ({ broker, running }) => measure(broker, running, context.seconds),
    ({ perS }) => `${perS!.toFixed(0)} messages/s`,
  );
  return rows;
}

/** One run of the load. */
export async function loadOnce(
  context: BenchContext,
  {
    broker,
    protocol,
    connections,
    window,
    records,
  }: Omit<BrokerLoad, "broker"> & {
    broker: Pick<BenchBroker, "name">;
  },
  running: RunningBroker,
  seconds: number,
) {
  const before = readTreeCpu(running.pid).cpuMs;
  const numbers = [running.ports[protocol], connections, window, records, seconds];
  const output = await runPinned({
    name: `load on ${broker.name}`,
    command: process.execPath,
    args: [LOAD_PROGRAM, protocol, ...numbers.map(String)],
    cores: context.cores.load,
  });
  const summary = JSON.parse(output) as LoadSummary;
  const messages = protocol === "fetch" ? summary.bytes / 1_024 : summary.records;
  return {
    perS: messages / summary.seconds,
    mbPerS: summary.bytes / 1e6 / summary.seconds,
    cpuUs: ((readTreeCpu(running.pid).cpuMs - before) * 1_000) / messages,
    p99Ms: summary.p99Ms,
  };
}
