// Attempts, failures and response times of links in shared memory, counted by all workers.
import { LINKS_MAX } from "./link-state.ts";

/** Words per link; see {@link LinkFigures}. */
const WORDS = 64;
const TIMES_AT = 1;
const FAILURES = WORDS - 1;
/** Number of ranges of response times. */
export const LINK_TIMES = FAILURES - TIMES_AT;
const FIRST_MS = 0.1;
const PER_DOUBLING = 3;

/** Upper bounds of the ranges of response times in ms, from 0.1 ms to 106 s; the last range has none. */
export const LINK_TIME_BOUNDS_MS: readonly number[] = Array.from(
  { length: LINK_TIMES - 1 },
  (_, index) => FIRST_MS * 2 ** (index / PER_DOUBLING),
);

/**
 * Counts by link slot since the link got it, modulo 2 ** 32:
 *
 *     [0] attempts without a response   [1 … 62] responses by the time to their head   [63] failed attempts of both kinds
 *
 * One addition per attempt and one per failure: the number of attempts is a sum.
 */
export class LinkFigures {
  readonly #words: Int32Array;

  constructor(buffer: SharedArrayBuffer) {
    this.#words = new Int32Array(buffer);
  }

  /** Counts an attempt that got a response after `elapsedMs`. */
  addResponse(slot: number, elapsedMs: number, isFailure: boolean): void {
    const at = slot * WORDS;
    Atomics.add(this.#words, at + TIMES_AT + findRange(elapsedMs), 1);
    if (isFailure) Atomics.add(this.#words, at + FAILURES, 1);
  }

  /** Counts an attempt that got none. */
  addUnanswered(slot: number): void {
    const at = slot * WORDS;
    Atomics.add(this.#words, at, 1);
    Atomics.add(this.#words, at + FAILURES, 1);
  }

  /** Number of attempts. */
  readAttempts(slot: number): number {
    let sum = 0;
    for (let word = 0; word < FAILURES; word++) sum += this.#read(slot, word);
    return sum;
  }

  /** Number of attempts that failed. */
  readFailures(slot: number): number {
    return this.#read(slot, FAILURES);
  }

  /** Adds the numbers of responses by time to `counts`, which has {@link LINK_TIMES} entries. */
  sumTimes(slot: number, counts: Float64Array): void {
    for (let range = 0; range < LINK_TIMES; range++) {
      counts[range] = counts[range]! + this.#read(slot, TIMES_AT + range);
    }
  }

  /** Clears the slot for another link. */
  clear(slot: number): void {
    for (let word = 0; word < WORDS; word++) Atomics.store(this.#words, slot * WORDS + word, 0);
  }

  #read(slot: number, word: number): number {
    return Atomics.load(this.#words, slot * WORDS + word) >>> 0;
  }
}

/** Allocates the figures of all links. */
export function allocateLinkFigures(): SharedArrayBuffer {
  return new SharedArrayBuffer(LINKS_MAX * WORDS * Int32Array.BYTES_PER_ELEMENT);
}

function findRange(elapsedMs: number): number {
  if (!(elapsedMs > FIRST_MS)) return 0;
  return Math.min(LINK_TIMES - 1, Math.ceil(PER_DOUBLING * Math.log2(elapsedMs / FIRST_MS)));
}
