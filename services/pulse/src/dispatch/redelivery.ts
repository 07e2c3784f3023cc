// Failed deliveries of a group's messages: their number, and the time of the next delivery.
import type { Message } from "../message/message.ts";

/** Redelivery settings of shared subscriptions. */
export interface RedeliverySettings {
  /** Failed deliveries after which a message becomes a dead letter; 0 for no limit. */
  maxDeliveries: number;
  /** Delay after the first negative acknowledgement of a message, in ms; doubles with each further one. */
  backoffMs: number;
  /** Longest delay, in ms. */
  backoffMsMax: number;
}

/** The delay before the next delivery of a message after `failures` failures, in ms. */
export function computeBackoffMs(settings: RedeliverySettings, failures: number): number {
  const { backoffMs, backoffMsMax } = settings;
  // Past 2^30 the product only grows further beyond the maximum.
  return Math.min(backoffMsMax, backoffMs * 2 ** Math.min(30, failures - 1));
}

/** Failed deliveries by offset, in stored form. */
export type StoredFailures = readonly (readonly [offset: number, count: number])[];

interface Failure {
  count: number;
  dueMs: number;
  isExhausted: boolean;
}

/** Failed deliveries of the unacknowledged messages of one partition. */
export class FailedDeliveries {
  readonly #byOffset = new Map<number, Failure>();
  #unsaved = new Set<number>();

  constructor(stored: StoredFailures = []) {
    for (const [offset, count] of stored) {
      this.#byOffset.set(offset, { count, dueMs: 0, isExhausted: false });
    }
  }

  /** Number of failed deliveries of a message. */
  countOf(offset: number): number {
    return this.#byOffset.get(offset)?.count ?? 0;
  }

  /** Earliest time of the next delivery, in monotonic ms; 0 if there is no delay. */
  dueMsOf(offset: number): number {
    return this.#byOffset.get(offset)?.dueMs ?? 0;
  }

  /** True if a message is becoming a dead letter. */
  isExhausted(offset: number): boolean {
    return this.#byOffset.get(offset)?.isExhausted ?? false;
  }

  /** Counts a failed delivery; returns the new count. */
  add(offset: number): number {
    const count = this.countOf(offset) + 1;
    this.#byOffset.set(offset, { count, dueMs: 0, isExhausted: false });
    this.#unsaved.add(offset);
    return count;
  }

  /** Delays a message until `dueMs`. */
  postpone(offset: number, dueMs: number): void {
    const failure = this.#byOffset.get(offset);
    if (failure === undefined) return;
    failure.dueMs = dueMs;
    failure.isExhausted = false;
  }

  /** Marks a message as becoming a dead letter. */
  exhaust(offset: number): void {
    const failure = this.#byOffset.get(offset);
    if (failure !== undefined) failure.isExhausted = true;
  }

  /** Drops a completed message. */
  forget(offset: number): void {
    if (this.#byOffset.delete(offset)) this.#unsaved.add(offset);
  }

  /** Drops all messages below an offset. */
  forgetBelow(low: number): void {
    for (const offset of this.#byOffset.keys()) if (offset < low) this.forget(offset);
  }

  /** Offsets of messages with failed deliveries. */
  offsets(): Iterable<number> {
    return this.#byOffset.keys();
  }

  /** Returns and clears the changes to store; a count of 0 deletes an entry. */
  takeChanges(): [offset: number, count: number][] {
    if (this.#unsaved.size === 0) return [];
    const changes = Array.from(this.#unsaved, (offset): [number, number] => [
      offset,
      this.countOf(offset),
    ]);
    this.#unsaved = new Set();
    return changes;
  }

  /** Restores changes that could not be stored. */
  putBack(changes: StoredFailures): void {
    for (const [offset] of changes) this.#unsaved.add(offset);
  }
}

/** Messages waiting for redelivery, ordered by due time. */
export class PostponedMessages {
  readonly #waiting: { message: Message; dueMs: number }[] = [];
  #bytes = 0;

  get count(): number {
    return this.#waiting.length;
  }

  /** Payload bytes of the waiting messages. */
  get bytes(): number {
    return this.#bytes;
  }

  add(message: Message, dueMs: number): void {
    const at = this.#waiting.findLastIndex((other) => other.dueMs <= dueMs) + 1;
    this.#waiting.splice(at, 0, { message, dueMs });
    this.#bytes += message.payload.length;
  }

  /** Removes and returns due messages. */
  takeDue(nowMs: number): Message[] {
    let count = 0;
    while (count < this.#waiting.length && this.#waiting[count]!.dueMs <= nowMs) count++;
    return this.#takeOut(this.#waiting.splice(0, count));
  }

  /** Removes and returns the messages that match. */
  remove(matches: (message: Message) => boolean): void {
    for (let at = this.#waiting.length - 1; at >= 0; at--) {
      if (matches(this.#waiting[at]!.message)) this.#takeOut(this.#waiting.splice(at, 1));
    }
  }

  clear(): void {
    this.#waiting.length = 0;
    this.#bytes = 0;
  }

  #takeOut(taken: readonly { message: Message }[]): Message[] {
    return taken.map(({ message }) => {
      this.#bytes -= message.payload.length;
      return message;
    });
  }
}
