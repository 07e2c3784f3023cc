// MQTT: fan-out with QoS 0, durable messages with QoS 1, idle connections.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import { runPinned, startPinned } from "../../harness/process.ts";
import type { Row } from "../../harness/report.ts";
import { readTreeCpu, readTreeUsage } from "../../harness/usage.ts";
import { mosquitto } from "../brokers/mosquitto.ts";
import { makePlatformPulse } from "../brokers/platform-pulse.ts";
import { rabbitmq } from "../brokers/rabbitmq.ts";
import type { BenchBroker, RunningBroker } from "../brokers/broker.ts";
import { runContest } from "../contest.ts";
import { payloadBytes, type MqttLoadSummary } from "../mqtt-load.ts";

const LOAD_PROGRAM = new URL("../mqtt-load.ts", import.meta.url).pathname;
const SUBSCRIBERS = 100;
const FAN_OUT_WINDOW = 64;
/** Messages per second, within what each broker does on one core. */
const PACED_RATE = 400;
const QUEUE = { connections: 16, window: 50 };
const IDLE = 10_000;
const IDLE_AFTER_MS = 3_000;
const KILOBYTE = 1_000;

const COLUMNS = [
  { key: "perS", title: "received/s", digits: 0 },
  { key: "perCpuS", title: "received per CPU s of the broker", digits: 0 },
  { key: "loadShare", title: "load's CPU share", digits: 2 },
] as const;

/** One publisher, a hundred subscribers. */
export const mqttFanOut: BenchCase = {
  name: "mqtt-fan-out",
  title: "MQTT, QoS 0, from one publisher to 100 subscribers",
  run: async (context) => ({
    work: `Messages of ${payloadBytes["fan-out"]} bytes, MQTT 3.1.1, at most ${FAN_OUT_WINDOW} of them on their way. Ours stores each message in its log, without waiting for the disk. "Load's CPU share" near 1 means that the load is the bottleneck, not the broker: the goal is a ratio of messages per CPU second of the broker.`,
    columns: COLUMNS,
    rows: await runContest(context, [...ours(context), mosquitto], (broker, running, seconds) =>
      load(context, broker, running, ["fan-out", SUBSCRIBERS, FAN_OUT_WINDOW, seconds]),
    ),
    ratioColumns: ["perCpuS", "perS"],
    goals: [{ column: "perCpuS", against: "mosquitto", atLeast: 0.4 }],
  }),
};

/** One publisher, a hundred subscribers, single messages. */
export const mqttPaced: BenchCase = {
  name: "mqtt-paced",
  title: `MQTT, QoS 0, ${PACED_RATE} messages/s to 100 subscribers`,
  run: async (context) => ({
    work: `As mqtt-fan-out, with one message of ${payloadBytes["fan-out"]} bytes at a time, at even intervals: bursts, which the broker writes together for each subscriber, do not arise.`,
    columns: COLUMNS,
    rows: await runContest(context, [...ours(context), mosquitto], (broker, running, seconds) =>
      load(context, broker, running, ["paced", SUBSCRIBERS, PACED_RATE, seconds]),
    ),
    ratioColumns: ["perCpuS"],
    goals: [{ column: "perCpuS", against: "mosquitto", atLeast: 0.4 }],
  }),
};

/** Durable messages. */
export const mqttQueue: BenchCase = {
  name: "mqtt-queue",
  title: "MQTT, QoS 1, through a durable session",
  run: async (context) => ({
    work: `${QUEUE.connections} publishers with ${QUEUE.window} messages of 1 KB in flight each, QoS 1; one client with a durable session receives and acknowledges all of them, QoS 1. Ours and RabbitMQ (durable queue) acknowledge what is on disk. mosquitto has no persistence: it keeps messages in memory.`,
    columns: [...COLUMNS, { key: "p99Ms", title: "p99 of PUBACK ms", digits: 1 }],
    rows: await runContest(
      context,
      [...ours(context), rabbitmq, mosquitto],
      (broker, running, seconds) =>
        load(context, broker, running, ["queue", QUEUE.connections, QUEUE.window, seconds]),
    ),
    ratioColumns: ["perS", "perCpuS"],
    goals: [
      { column: "perS", against: "rabbitmq", atLeast: 2 },
      { column: "perCpuS", against: "mosquitto", atLeast: 0.3 },
    ],
  }),
};

/** Memory of connections that only subscribe. */
export const mqttIdle: BenchCase = {
  name: "mqtt-idle",
  title: "Memory of 10 000 idle MQTT connections",
  run: async (context) => {
    const rows: Row[] = [];
    for (const broker of [...ours(context), mosquitto]) {
      const row: Row = { name: broker.name, isOurs: broker.isOurs, version: "", rounds: [] };
      rows.push(row);
      const absence = broker.explainAbsence();
      if (absence !== undefined) {
        row.note = absence;
        continue;
      }
      row.version = broker.readVersion();
      row.rounds.push(await measureIdle(context, broker));
      context.say(`  ${broker.name}: ${JSON.stringify(row.rounds[0])}`);
    }
    return {
      work: "Each connection has subscribed to a topic with QoS 0. Growth of the proportional set size of the broker, without socket buffers of the kernel.",
      columns: [
        { key: "beforeMb", title: "MB before", digits: 1 },
        { key: "afterMb", title: "MB after", digits: 1 },
        { key: "kbEach", title: "KB per connection", digits: 1 },
      ],
      rows,
      ratioColumns: [],
      goals: [],
    };
  },
};

function ours(context: BenchContext): BenchBroker[] {
  return context.builds.map(makePlatformPulse);
}

async function load(
  context: BenchContext,
  { name }: BenchBroker,
  running: RunningBroker,
  [mode, ...numbers]: [string, ...number[]],
): Promise<Record<string, number>> {
  const before = readTreeCpu(running.pid).cpuMs;
  const output = await runPinned({
    name: `load on ${name}`,
    command: process.execPath,
    args: [LOAD_PROGRAM, mode, ...[running.ports.mqtt!, ...numbers].map(String)],
    cores: context.cores.load,
  });
  const { received, seconds, p99Ms, cpuMs } = JSON.parse(output) as MqttLoadSummary;
  return {
    perS: received / seconds,
    perCpuS: received / ((readTreeCpu(running.pid).cpuMs - before) / 1_000),
    loadShare: cpuMs / 1_000 / seconds,
    p99Ms,
  };
}

async function measureIdle(context: BenchContext, broker: BenchBroker) {
  await using workspace = new Workspace();
  const folder = join(workspace.folder, "broker");
  mkdirSync(folder);
  const running = await broker.start({ cores: context.cores.test, folder, workspace });
  const readBytes = () => readTreeUsage(running.pid).pssBytes;
  const before = readBytes();
  const client = workspace.keep(
    startPinned({
      name: "idle clients",
      command: process.execPath,
      args: [LOAD_PROGRAM, "idle", String(running.ports.mqtt), String(IDLE)],
      cores: context.cores.load,
    }),
  );
  while (!client.readOutput().includes(`open ${IDLE}`)) {
    if (client.hasExited()) throw new Error(client.readOutput());
    await sleep(100);
  }
  await sleep(IDLE_AFTER_MS);
  if (client.readOutput().includes("closed")) throw new Error("the broker closed connections");
  const after = readBytes();
  return {
    beforeMb: before / KILOBYTE / KILOBYTE,
    afterMb: after / KILOBYTE / KILOBYTE,
    kbEach: (after - before) / KILOBYTE / IDLE,
  };
}
