// The forms of a message on its way into the log:
//
//   accepted ──► fit ──► claimed ──► stored | scheduled
//           └──► dead-lettered ──┴─► duplicate
import type { PendingDelay } from "../dispatch/delays.ts";
import type { PendingRecord } from "../store/store.ts";
import type { Topic } from "../topic/topics.ts";
import type { Claims } from "./claims.ts";
import type { FirstPlace } from "./message-ids.ts";
import { withinAsync, withoutIndex } from "./message-index.ts";
import type { PublishInput } from "./publish-input.ts";

/** A message that its topic accepts. */
export interface Accepted {
  input: PublishInput;
  topic: Topic;
  /** "" if it needs none. */
  messageId: string;
}

/** A message with the payload that is stored. */
interface Fit extends Accepted {
  kind: "fit";
  payload: Buffer;
}

/** A message that the topic's transform refused, with its original payload. */
interface DeadLettered extends Accepted {
  kind: "dead-lettered";
  payload: Buffer;
  pending: PendingRecord;
  deadLetterTopic: string;
  reason: string;
}

/** A message that was published before. */
export interface Duplicate extends Accepted {
  kind: "duplicate";
  payload: Buffer;
  /** Settles with the first message; its place is unknown if it was found by its sequence number. */
  first: Promise<FirstPlace | void>;
}

/** A message after the topic's transform. */
export type Shaped = Fit | DeadLettered;

/** A message whose id and sequence number are claimed. */
export type Claimed = ClaimedFit | ClaimedDeadLetter | Duplicate;
type ClaimedFit = Fit & { claims: Claims };
type ClaimedDeadLetter = DeadLettered & { claims: Claims };

/** A message that can be consumed later. */
export interface Scheduled extends Accepted {
  kind: "scheduled";
  payload: Buffer;
  claims: Claims;
  due: PendingDelay;
}

/** A message that can be consumed once it is stored. */
interface Stored extends Accepted {
  kind: "stored";
  payload: Buffer;
  claims: Claims;
  pending: PendingRecord;
  partition: number;
  expiresAt: number | undefined;
  companion: PendingRecord | undefined;
}

/** A message with its records. */
export type Placed = Stored | Scheduled | ClaimedDeadLetter;

/**
 * Waits until the messages that other calls have claimed before are stored: those before them of the same producers, and the
 * first ones of duplicates. Rejects with the error of one that could not be stored: then this call may be repeated.
 */
export async function waitForEarlier(
  all: readonly Claimed[],
  own: ReadonlySet<Promise<unknown>>,
): Promise<void> {
  for (const [index, message] of all.entries()) {
    const before = message.kind === "duplicate" ? [message.first] : message.claims.after;
    for (const earlier of before) {
      if (own.has(earlier)) continue;
      await withinAsync(all, index, async () => {
        await earlier.catch((error: unknown) => {
          throw withoutIndex(error);
        });
      });
    }
  }
}
