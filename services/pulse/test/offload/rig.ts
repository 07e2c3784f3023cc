// A broker with offloaded topics, and what its clients read.
import assert from "node:assert/strict";
import { decodeBatch, splitBatches } from "@platform/log/batch";
import { waitFor } from "@platform/testing/wait";
import { fetch as fetchRecords } from "../../src/kafka/protocol/messages/index.ts";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import { KafkaClient } from "../kafka/client.ts";

/** The API of the offload. */
export const OFFLOADER = "/api/v1/admin/offloader";
/** Enough to be written to a segment at once, not only by a checkpoint. */
export const PAYLOAD_BYTES = 140_000;
/** Messages of a topic. */
export const COUNT = 13;
/** Two payloads fit into a segment; the last one is in the growing segment. */
const SEGMENT_BYTES = 2 * PAYLOAD_BYTES;

/** A broker that may use a store on this machine. */
export const startBroker = (
  t: { after(done: () => unknown): void },
  env: Record<string, string> = {},
) => startPulseHere(t, { PLATFORM_PULSE_EGRESS_NETWORKS: "127.0.0.0/8", ...env });

/** Creates a topic whose closed segments leave the disk. */
export async function makeTopic(
  pulse: PulseHere,
  name: string,
  changes: object = {},
): Promise<void> {
  const cold = { offload: true, local_retention_bytes: 0, segment_bytes: SEGMENT_BYTES };
  const made = await pulse.post("/api/v1/topics", { name, config: { ...cold, ...changes } });
  assert.equal(made.status, 201, JSON.stringify(made.body));
}

/** Publishes numbered messages of different contents and returns them. */
export async function publishMany(
  pulse: PulseHere,
  topic: string,
  count = COUNT,
): Promise<string[]> {
  const payloads = Array.from({ length: count }, (_, at) =>
    `${topic}-${at} `.padEnd(PAYLOAD_BYTES, String.fromCharCode(97 + (at % 26))),
  );
  for (const payload of payloads) {
    const { status, body } = await pulse.publish({ topic, payload });
    assert.equal(status, 200, JSON.stringify(body));
  }
  return payloads;
}

/** Waits until everything but the growing segment is in the store; returns the status. */
export function waitForOffload(pulse: PulseHere, segments: number) {
  let last: unknown;
  return waitFor(
    async () => {
      const { body } = await pulse.get(OFFLOADER);
      last = body;
      return body.remote_segments >= segments && body.pending_segments === 0 ? body : undefined;
    },
    () => JSON.stringify(last),
  );
}

/** One fetch of a Kafka client. */
export async function fetchOnce(
  pulse: PulseHere,
  topic: string,
  fetchOffset: number,
  maxWaitMs: number,
) {
  await using client = await KafkaClient.connect(pulse.kafkaPort);
  const partitions = [{ partition: 0, fetchOffset, partitionMaxBytes: 500_000 }];
  const body = { maxWaitMs, minBytes: 1, maxBytes: 500_000, isolationLevel: 0 };
  const answer = await client.ask(fetchRecords, 11, {
    ...body,
    topics: [{ name: topic, partitions }],
  });
  return answer.topics[0]!.partitions[0]!;
}

/** The payloads of a topic, as a Kafka client reads them. */
export async function readByKafka(
  pulse: PulseHere,
  topic: string,
  count: number,
): Promise<string[]> {
  const payloads: string[] = [];
  for (let offset = 0; payloads.length < count;) {
    const { errorCode, records } = await fetchOnce(pulse, topic, offset, 500);
    assert.equal(errorCode, 0);
    for (const batch of splitBatches(Buffer.from(records ?? []))) {
      for (const record of (await decodeBatch(batch)).records) {
        if (record.offset < offset) continue;
        payloads.push(String(record.value));
        offset = record.offset + 1;
      }
    }
  }
  return payloads;
}
