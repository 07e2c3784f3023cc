// The settings of a topic, as the API shows them.
import { z } from "zod";
import { createEtag } from "@platform/kernel/http";
import type { DeadLetterWriter } from "../deadletter/dead-letter-writer.ts";
import type { Topic } from "../topic/topics.ts";

/** Policies for old messages. */
export const POLICIES = ["delete", "compact", "compact,delete"] as const;

export const configAnswer = z.object({
  retention_ms: z.number(),
  retention_bytes: z.number(),
  cleanup_policy: z.enum(POLICIES),
  segment_bytes: z.number(),
  delete_retention_ms: z.number(),
  offload: z.boolean().describe("Closed segments are uploaded to object storage."),
  key_index: z
    .boolean()
    .describe(
      "Closed segments have filters of their keys, so that one key is found without reading all.",
    ),
  local_retention_ms: z
    .number()
    .describe("Age at which uploaded segments leave the disk; -2: as retention_ms."),
  local_retention_bytes: z
    .number()
    .describe("Size from which uploaded segments leave the disk; -2: as retention_bytes."),
});

/** Describes the settings. */
export function describeConfig({ stored: { config } }: Topic) {
  return {
    retention_ms: config.retentionMs,
    retention_bytes: config.retentionBytes,
    cleanup_policy: config.cleanupPolicy,
    segment_bytes: config.segmentBytes,
    delete_retention_ms: config.deleteRetentionMs,
    offload: config.offload,
    key_index: config.keyIndex,
    local_retention_ms: config.localRetentionMs,
    local_retention_bytes: config.localRetentionBytes,
  };
}

/** Tag of the settings and of the name of the dead letter topic. */
export function tagConfig(
  { deadLetters }: { deadLetters: DeadLetterWriter },
  topic: Topic,
): string {
  return createEtag(JSON.stringify([describeConfig(topic), deadLetters.nameFor(topic)]));
}
