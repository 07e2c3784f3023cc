// Messages that failed too often in a group, waiting to become dead letters.
import type { Clock } from "@platform/kernel/time";
import type { DeadLetterWriter } from "../deadletter/dead-letter-writer.ts";
import type { Message } from "../message/message.ts";
import { sizeOf, type PendingRecord } from "../store/store.ts";
import type { Topic } from "../topic/topics.ts";
import type { SharedSubscription } from "./shared-subscription.ts";

/** Maximum bytes of dead letters in one entry, unless a single one is larger. */
const LETTERS_BYTES_MAX = 2 * 1024 * 1024;

/** A message that has failed too often in a group. */
export interface Undelivered {
  group: SharedSubscription;
  message: Message;
  failures: number;
}

/** An undelivered message with the record of its dead letter. */
export type UndeliveredLetter = Undelivered & { pending: PendingRecord };

interface UndeliveredMessagesOptions {
  deadLetters: DeadLetterWriter;
  clock: Clock;
  onError: (error: unknown) => void;
}

/** The messages waiting to become dead letters. They count against the look-ahead of groups, which bounds them. */
export class UndeliveredMessages {
  readonly #options: UndeliveredMessagesOptions;
  #waiting: Undelivered[] = [];

  constructor(options: UndeliveredMessagesOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#waiting.length;
  }

  add(undelivered: Undelivered): void {
    const { group, message } = undelivered;
    // Dead letters cannot become dead letters again; they are redelivered instead.
    const isDeadLetter = this.#options.deadLetters.isDeadLetterName(group.tenant, group.topic.name);
    if (isDeadLetter) group.retryLater(message);
    else this.#waiting.push(undelivered);
  }

  /**
   * Removes as many as one entry may hold and returns their dead letters; creates missing dead letter topics. If that
   * fails, the group delivers the message again.
   */
  async takeLetters(): Promise<UndeliveredLetter[]> {
    const targets = await this.#ensureTopics();
    const letters: UndeliveredLetter[] = [];
    const waiting = this.#waiting;
    let bytes = 0;
    let taken = 0;
    for (const undelivered of waiting) {
      const letter = this.#preparePending(undelivered, targets);
      if (letter !== undefined) {
        bytes += sizeOf(letter.pending.record);
        if (letters.length > 0 && bytes > LETTERS_BYTES_MAX) break;
        letters.push(letter);
      }
      taken++;
    }
    this.#waiting = waiting.slice(taken);
    return letters;
  }

  async #ensureTopics(): Promise<Map<Topic, Topic>> {
    const { deadLetters, onError } = this.#options;
    const targets = new Map<Topic, Topic>();
    for (const topic of new Set(this.#waiting.map(({ group }) => group.topic))) {
      try {
        if (topic.stored.live) targets.set(topic, await deadLetters.ensure(topic));
      } catch (error) {
        onError(error);
      }
    }
    return targets;
  }

  #preparePending(
    undelivered: Undelivered,
    targets: ReadonlyMap<Topic, Topic>,
  ): UndeliveredLetter | undefined {
    const { deadLetters, clock } = this.#options;
    const { group, message, failures } = undelivered;
    const { topic, partition, offset } = message;
    // A replay or expiry may have come first.
    if (group.failuresOf(partition)?.isExhausted(offset) !== true) return undefined;
    const target = targets.get(topic);
    if (target === undefined) {
      group.retryLater(message);
      return undefined;
    }
    const pending = deadLetters.toPending(target, {
      ...message,
      sourceTopic: topic.name,
      retryCount: message.retryCount + failures - 1,
      reason: `not acknowledged by the group ${JSON.stringify(group.name)} in ${failures} deliveries`,
      at: clock.now(),
    });
    return { ...undelivered, pending };
  }
}
