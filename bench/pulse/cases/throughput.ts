// Durable throughput in and out, compared with other brokers.
import type { BenchCase, BenchContext } from "../../harness/case.ts";
import type { BenchBroker } from "../brokers/broker.ts";
import { nats } from "../brokers/nats.ts";
import { makePlatformPulse } from "../brokers/platform-pulse.ts";
import { rabbitmq } from "../brokers/rabbitmq.ts";
import { BROKER_COLUMNS, loadOnce, runBrokers } from "../contest.ts";

const FILL_SECONDS = 5;
const batched = { connections: 4, window: 4, records: 100 };
/** As many messages in flight as with the batches. */
const single = { connections: 4, window: 400, records: 1 };
const waiting = { connections: 64, window: 1, records: 1 };

const makeOurs = (context: BenchContext): BenchBroker[] => context.builds.map(makePlatformPulse);

/** Kafka producers with batches of 100. */
export const produce: BenchCase = {
  name: "produce",
  title: "1 KB messages in, batched or pipelined",
  run: async (context) => ({
    work: "1 600 messages of 1 KB in flight over four connections. Ours: Kafka Produce with acks=all, 100 records per batch, 4 partitions, fdatasync before the response. NATS: JetStream publish with acknowledgement, file store, synced every two minutes. RabbitMQ: STOMP SEND with receipt to a quorum queue.",
    columns: BROKER_COLUMNS,
    rows: await runBrokers(context, [
      ...makeOurs(context).map((broker) => ({ broker, protocol: "kafka" as const, ...batched })),
      { broker: nats, protocol: "nats", ...single },
      { broker: rabbitmq, protocol: "stomp", ...single },
    ]),
    ratioColumns: ["mbPerS"],
    goals: [
      // NATS acknowledges without a sync, so the ratio has no goal.
      { column: "mbPerS", against: "nats-server" },
      { column: "mbPerS", against: "rabbitmq", atLeast: 5 },
    ],
  }),
};

/** Kafka consumers that read from the page cache. */
export const fetchBatches: BenchCase = {
  name: "fetch",
  title: "1 KB messages out to Kafka consumers",
  run: async (context) => ({
    work: "Four connections with a partition each; sequential Fetch requests of up to 1 MiB, starting over at the end.",
    columns: BROKER_COLUMNS,
    rows: await runBrokers(
      context,
      makeOurs(context).map((broker) => ({
        broker,
        protocol: "fetch" as const,
        connections: 4,
        window: 1,
        records: 1,
      })),
      async (running) => {
        const fill = { broker: { name: "pulse" }, protocol: "kafka" as const, ...batched };
        await loadOnce(context, fill, running, FILL_SECONDS);
      },
    ),
    ratioColumns: [],
    goals: [],
  }),
};

/** STOMP clients that wait for receipts. */
export const stomp: BenchCase = {
  name: "stomp",
  title: "STOMP SEND with receipt, 1 KB",
  run: async (context) => ({
    work: "1 600 messages of 1 KB in flight over four connections, each SEND with a receipt that means on disk. RabbitMQ: a quorum queue.",
    columns: BROKER_COLUMNS,
    rows: await runBrokers(
      context,
      [...makeOurs(context), rabbitmq].map((broker) => ({
        broker,
        protocol: "stomp" as const,
        ...single,
      })),
    ),
    ratioColumns: ["perS", "cpuUs"],
    goals: [{ column: "perS", against: "rabbitmq", atLeast: 1 }],
  }),
};

/** Clients that wait for each response. */
export const publish: BenchCase = {
  name: "publish",
  title: "1 KB messages in, one at a time on 64 connections",
  run: async (context) => ({
    work: "64 connections that each wait until their message is stored. Ours: POST /api/v1/publish. NATS: JetStream publish, synced every two minutes. RabbitMQ: STOMP SEND with receipt to a quorum queue.",
    columns: BROKER_COLUMNS,
    rows: await runBrokers(context, [
      ...makeOurs(context).map((broker) => ({ broker, protocol: "http" as const, ...waiting })),
      { broker: nats, protocol: "nats", ...waiting },
      { broker: rabbitmq, protocol: "stomp", ...waiting },
    ]),
    ratioColumns: ["perS"],
    goals: [{ column: "perS", against: "rabbitmq", atLeast: 1 }],
  }),
};
