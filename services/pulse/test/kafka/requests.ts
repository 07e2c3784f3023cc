// Requests that several tests make of a staged broker.
import assert from "node:assert/strict";
import { encodeBatch } from "@platform/log/batch";
import { apiVersions, metadata, produce } from "../../src/kafka/protocol/messages/index.ts";
import type { KafkaClient } from "./client.ts";

/** One mebibyte. */
export const mebibyte = 1024 * 1024;
/** The body of ApiVersions. */
export const versionsBody = { clientSoftwareName: "test", clientSoftwareVersion: "1" };

/** Whether the broker answers the client. */
export async function isServed(client: KafkaClient): Promise<boolean> {
  const { errorCode } = await client.ask(apiVersions, 3, versionsBody);
  return errorCode === 0;
}

/** Writes a batch of about `bytes` to topic `name`, partition 0, which is created if it is missing. */
export async function fill(client: KafkaClient, name: string, bytes: number): Promise<void> {
  await client.ask(metadata, 12, { topics: [{ name }] });
  await write(client, name, bytes);
}

/** As `fill`, for a topic that exists. */
export async function write(client: KafkaClient, name: string, bytes: number): Promise<void> {
  const records = [
    encodeBatch([{ key: null, value: Buffer.alloc(bytes), headers: [], timestamp: 1 }]),
  ];
  const { topics } = await client.ask(produce, 9, {
    acks: -1,
    timeoutMs: 1000,
    topics: [{ name, partitions: [{ index: 0, records }] }],
  });
  assert.equal(topics[0]!.partitions[0]!.errorCode, 0);
}

/** The body of a Fetch of partition 0 from its start, for as much as the broker gives. */
export function fetchBody(name: string, maxWaitMs = 0) {
  const partitions = [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 64 * mebibyte }];
  return {
    maxWaitMs,
    minBytes: 1,
    maxBytes: 64 * mebibyte,
    isolationLevel: 0,
    topics: [{ name, partitions }],
  };
}
