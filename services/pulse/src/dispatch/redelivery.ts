// Deliveries of a group's messages that failed: how many, and when a message may be delivered again.
import type { Message } from "../message.ts";

/** How a group treats messages that its members do not acknowledge. */
export interface RedeliverySettings {
  /** Failed deliveries after which a message becomes a dead letter; 0 for no limit. */
  maxDeliveries: number;
  /** Wait after the first negative acknowledgement of a message, in ms; it doubles with each further one. */
  backoffMs: number;
  /** Longest such wait, in ms. */
  backoffMsMax: number;
}

/** The wait before a message is delivered again that has failed `failures` times, in ms. */
export function computeBackoffMs(settings: RedeliverySettings, failures: number): number {
  const { backoffMs, backoffMsMax } = settings;
  // Past 2^30 the product only grows further beyond the bound.
  return Math.min(backoffMsMax, backoffMs * 2 ** Math.min(30, failures - 1));
}

/** Failed deliveries by offset, as they are stored. */
export type StoredFailures = readonly (readonly [offset: number, count: number])[];

interface Failure {
  count: number;
  dueMs: number;
  isExhausted: boolean;
}

/** The failed deliveries of one partition, for messages that are not acknowledged. */
export class FailedDeliveries {
  readonly #byOffset = new Map<number, Failure>();
  #unsaved = new Set<number>();

  constructor(stored: StoredFailures = []) {
    for (const [offset, count] of stored) {
      this.#byOffset.set(offset, { count, dueMs: 0, isExhausted: false });
    }
  }

  /** Deliveries of a message that failed. */
  countOf(offset: number): number {
    return this.#byOffset.get(offset)?.count ?? 0;
  }

  /** When a message may be delivered again, in monotonic ms; 0 if it may be at any time. */
  dueMsOf(offset: number): number {
    return this.#byOffset.get(offset)?.dueMs ?? 0;
  }

  /** Whether a message is on its way to the dead letters. */
  isExhausted(offset: number): boolean {
    return this.#byOffset.get(offset)?.isExhausted ?? false;
  }

  /** Counts a failed delivery and returns how many there are now. */
  add(offset: number): number {
    const count = this.countOf(offset) + 1;
    this.#byOffset.set(offset, { count, dueMs: 0, isExhausted: false });
    this.#unsaved.add(offset);
    return count;
  }

  /** Holds a message back until `dueMs`. */
  postpone(offset: number, dueMs: number): void {
    const failure = this.#byOffset.get(offset);
    if (failure === undefined) return;
    failure.dueMs = dueMs;
    failure.isExhausted = false;
  }

  /** Marks a message as on its way to the dead letters. */
  exhaust(offset: number): void {
    const failure = this.#byOffset.get(offset);
    if (failure !== undefined) failure.isExhausted = true;
  }

  /** Forgets a message that is done. */
  forget(offset: number): void {
    if (this.#byOffset.delete(offset)) this.#unsaved.add(offset);
  }

  /** Forgets all messages below an offset. */
  forgetBelow(low: number): void {
    for (const offset of this.#byOffset.keys()) if (offset < low) this.forget(offset);
  }

  /** Offsets of all messages with failed deliveries. */
  offsets(): Iterable<number> {
    return this.#byOffset.keys();
  }

  /** Changes since the last call, with the count that is to be stored; 0 where nothing is any more. */
  takeChanges(): [offset: number, count: number][] {
    if (this.#unsaved.size === 0) return [];
    const changes = Array.from(this.#unsaved, (offset): [number, number] => [
      offset,
      this.countOf(offset),
    ]);
    this.#unsaved = new Set();
    return changes;
  }

  /** Puts changes back that could not be stored. */
  putBack(changes: StoredFailures): void {
    for (const [offset] of changes) this.#unsaved.add(offset);
  }
}

/** Messages of a group that wait for their next delivery, in the order in which they are due. */
export class PostponedMessages {
  readonly #waiting: { message: Message; dueMs: number }[] = [];
  #bytes = 0;

  get count(): number {
    return this.#waiting.length;
  }

  /** Bytes of payload that wait. */
  get bytes(): number {
    return this.#bytes;
  }

  add(message: Message, dueMs: number): void {
    const at = this.#waiting.findLastIndex((other) => other.dueMs <= dueMs) + 1;
    this.#waiting.splice(at, 0, { message, dueMs });
    this.#bytes += message.payload.length;
  }

  /** Takes out what is due. */
  takeDue(nowMs: number): Message[] {
    let count = 0;
    while (count < this.#waiting.length && this.#waiting[count]!.dueMs <= nowMs) count++;
    return this.#takeOut(this.#waiting.splice(0, count));
  }

  /** Takes out whatever `matches`. */
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
