// The durable part of the client: what waits, what was set aside, and positions of subscriptions.
import type { Problem } from "../errors.ts";
import type { QueuedMessage } from "../message.ts";

/** Limits of a queue; messages set aside count as well. */
export interface QueueLimits {
  messagesMax: number;
  bytesMax: number;
  /** `drop-oldest` removes messages that were set aside first, then those that wait longest. */
  whenFull: "refuse" | "drop-oldest";
}

/** The oldest messages, and who sends them. */
export interface QueueHead {
  /** Random, as old as the store: a store that the browser has evicted begins with a new one. */
  producerId: string;
  /** Claim `sub` of the first token that this queue was sent with. */
  subject: string | undefined;
  /** In the order of their keys. */
  messages: QueuedMessage[];
}

/** Each method is one transaction; other tabs of this queue see it whole or not at all. */
export interface Outbox {
  /** False if it ends with the page. */
  readonly isDurable: boolean;
  /** Resolves when the message is stored. Rejects with `queue_full`. */
  add(
    message: Omit<QueuedMessage, "key">,
    limits: QueueLimits,
  ): Promise<{ dropped: QueuedMessage[] }>;
  /** At most `messagesMax` messages and `bytesMax` bytes, but at least one message if there is one. */
  head(messagesMax: number, bytesMax: number): Promise<QueueHead>;
  /** Removes messages that were sent. */
  settle(keys: readonly number[]): Promise<void>;
  /** Sets a message aside, so that the next can go on. */
  reject(key: number, problem: Problem): Promise<void>;
  /** Puts messages that were set aside at the end of the queue: all, or the one with this id. Resolves to their number. */
  retry(messageId: string | undefined): Promise<number>;
  /** Removes a message; resolves to false if there is none with this id. */
  discard(messageId: string): Promise<boolean>;
  /** Messages that wait, then those that were set aside. */
  list(): Promise<QueuedMessage[]>;
  /** Removes everything, positions too; numbers go on. */
  clear(): Promise<void>;
  setSubject(subject: string): Promise<void>;
  readCursor(name: string): Promise<string | undefined>;
  writeCursor(name: string, position: string): Promise<void>;
  /** Takes or renews the lease on sending. False if another owner has it. */
  lease(owner: string, nowMs: number, lengthMs: number): Promise<boolean>;
  release(owner: string): Promise<void>;
  close(): void;
}
