// Messages to publish, and their results.
import type { RecordHeader } from "@platform/log/batch";
import type { PendingRecord } from "../store/store.ts";
import type { FirstPlace } from "./message-ids.ts";

/** A message to publish. */
export interface PublishInput {
  topic: string;
  payload: Buffer;
  key?: Buffer | undefined;
  headers?: readonly RecordHeader[];
  priority?: number | undefined;
  delayMs?: number | undefined;
  ttlMs?: number | undefined;
  messageId?: string | undefined;
  producer?: { id: string; sequence: number } | undefined;
  retryCount?: number;
  /** Published by a client of a wire protocol: no id is generated, and only the backlogs of groups limit it. */
  isWire?: boolean;
  /** The value of the header `platform-mqtt`. */
  mqtt?: Buffer;
  /** Messages without a key but with the same order key go to one partition. */
  orderKey?: Buffer;
  /** A record of the same atomic entry that is made of the shaped payload, unless the message is delayed. */
  companion?: Companion;
}

/** A record that is stored with a message. */
export interface Companion {
  toPending: (payload: Buffer) => PendingRecord;
  /** Called with its offset when both are durable. */
  settle: (offset: number) => void;
}

/** Result of a message. */
export type PublishOutcome = { topic: string; messageId: string; payload: Buffer } & (
  | { kind: "stored"; partition: number; offset: number }
  | { kind: "scheduled"; dueMs: number }
  | { kind: "duplicate"; first: FirstPlace }
  | { kind: "dead-lettered"; deadLetterTopic: string; reason: string }
);
