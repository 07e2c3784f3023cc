// A message that is being published: its claims, its records, and the messages that must be stored before.
import type { PendingDelay } from "../dispatch/delays.ts";
import type { ExpiringEntry } from "../dispatch/expiry.ts";
import type { PendingRecord } from "../store/store.ts";
import type { Topic } from "../topic/topics.ts";
import type { FirstPlace } from "./message-ids.ts";
import { withinAsync, withoutIndex } from "./message-index.ts";
import type { PublishInput, PublishOutcome } from "./publish-input.ts";

/** A message id or a sequence number that a message uses. */
interface Claim {
  /** Settles with what must be stored before. */
  after: Promise<unknown> | undefined;
  /** Called immediately before the append. */
  toPending: () => readonly PendingRecord[];
  settle: (place: FirstPlace) => void;
  release: (why: Error) => void;
}

/** A message being published. */
export interface Prepared {
  input: PublishInput;
  topic: Topic;
  messageId: string;
  payload: Buffer;
  claims: Claim[];
  outcome: PublishOutcome | undefined;
  /** Settles with the first message; its place is unknown if it was found by its sequence number. */
  duplicate: Promise<FirstPlace | void> | undefined;
  pendingRecords: PendingRecord[];
  place: { pending: PendingRecord; partition: number; expiresAt: number | undefined } | undefined;
  companion: PendingRecord | undefined;
  due: PendingDelay | undefined;
  expiring: ExpiringEntry | undefined;
}

/**
 * Waits until the messages that other calls have claimed before are stored: those before them of the same producers, and the
 * first ones of duplicates. Rejects with the error of one that could not be stored: then this call may be repeated.
 */
export async function waitForEarlier(
  all: readonly Prepared[],
  own: ReadonlySet<Promise<unknown>>,
): Promise<void> {
  for (const [index, { claims, duplicate }] of all.entries()) {
    for (const earlier of [duplicate, ...claims.map(({ after }) => after)]) {
      if (earlier === undefined || own.has(earlier)) continue;
      await withinAsync(all, index, async () => {
        await earlier.catch((error: unknown) => {
          throw withoutIndex(error);
        });
      });
    }
  }
}
