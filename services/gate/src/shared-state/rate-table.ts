// Shared counts of rate-limited requests: one table for all workers, exact to the second.

/** Length of the window in seconds. */
export const RATE_WINDOW_SECONDS = 60;

const SETS = 32_768;
const WAYS = 8;
const ENTRY_WORDS = 64;
/** One second more than the window, because a window spans parts of 61 seconds, and one that may be overwritten. */
const BUCKETS = 62;
const TAG = 62;
const USED_AT = 63;
const COUNT_BITS = 20;
const COUNT_MASK = (1 << COUNT_BITS) - 1;
const STAMP_MASK = 0xfff;
/** Waits of 1 ms for the lock of a set, which is held for microseconds; then its holder has ended. */
const LOCK_WAITS = 100;

/** Size of the shared memory of {@link SharedRateTable}; occupied as it is used. */
export const RATE_TABLE_BYTES = (SETS + SETS * WAYS * ENTRY_WORDS) * 4;

/** The number of keys in the table: {@link SETS} × {@link WAYS}. */
export const RATE_KEYS_MAX = SETS * WAYS;

/** Place of a key in the table, as long as no other has replaced it. */
export interface RatePlace {
  readonly set: number;
  readonly tag: number;
  /** Position at which the key was found last. */
  at: number;
}

/**
 * Counts requests by key and second. A request is admitted if the seconds that its window touches have fewer than the
 * limit: never more than the limit in any 60 s, at the price of up to one second more until the next request.
 *
 *     Int32  [SETS]              lock of a set, taken only to add a key: 0 or 1
 *     Int32  [SETS][WAYS][64]    [0 … 61] by second: 12 bits of its lap, 20 bits of requests   [62] tag of the key, 0: unused
 *                                [63] second of the last request
 *
 * A request first adds itself, then reads the sum, and withdraws if that exceeds the limit. Of the requests that stay,
 * the last one to add itself has seen all others, so the limit holds across threads without a lock.
 */
export class SharedRateTable {
  readonly #words: Int32Array;
  readonly #seed: number;
  /** Outcome of the last {@link take}: requests left in the window, and seconds until one more is. */
  remaining = 0;
  resetSeconds = 0;
  /** Keys in use that were replaced by others because the table was full. */
  evictions = 0;

  /** `seed` is equal for all threads of the process and unknown to clients. */
  constructor(buffer: SharedArrayBuffer, seed: number) {
    this.#words = new Int32Array(buffer);
    this.#seed = seed;
  }

  /** The place of `key` in the numbered `space`. Keys of different spaces are counted separately. */
  findPlace(space: number, key: string): RatePlace {
    const tag = hash(key, this.#seed ^ space) | 1;
    const set = (hash(key, Math.imul(this.#seed, 31) ^ space) >>> 1) % SETS;
    return { tag, set, at: SETS + set * WAYS * ENTRY_WORDS };
  }

  /** Takes one request of a key at `nowMs`; false if there were `limit` in the window already. */
  take(place: RatePlace, limit: number, nowMs: number): boolean {
    const second = Math.floor(nowMs / 1000);
    const at = this.#find(place, second);
    const sum = this.#add(at, second);
    const isTaken = sum <= limit;
    if (!isTaken) this.#withdraw(at, second);
    this.remaining = isTaken ? limit - sum : 0;
    return isTaken;
  }

  #find(place: RatePlace, second: number): number {
    const { tag, set } = place;
    const words = this.#words;
    const at = Atomics.load(words, place.at + TAG) === tag ? place.at : findWay(words, set, tag);
    if (at === -1) place.at = this.#addKey(set, tag, second);
    else {
      place.at = at;
      if (Atomics.load(words, at + USED_AT) !== second) Atomics.store(words, at + USED_AT, second);
    }
    return place.at;
  }

  #addKey(set: number, tag: number, second: number): number {
    const words = this.#words;
    this.#lock(set);
    try {
      const added = findWay(words, set, tag);
      return added === -1 ? this.#replaceOldest(set, tag, second) : added;
    } finally {
      Atomics.store(words, set, 0);
      Atomics.notify(words, set);
    }
  }

  #lock(set: number): void {
    for (let waits = 0; waits < LOCK_WAITS; waits++) {
      if (Atomics.compareExchange(this.#words, set, 0, 1) === 0) return;
      Atomics.wait(this.#words, set, 1, 1);
    }
  }

  #replaceOldest(set: number, tag: number, second: number): number {
    const words = this.#words;
    let oldest = SETS + set * WAYS * ENTRY_WORDS;
    for (let way = 0; way < WAYS; way++) {
      const at = SETS + (set * WAYS + way) * ENTRY_WORDS;
      if (Atomics.load(words, at + TAG) === 0) {
        oldest = at;
        break;
      }
      if (Atomics.load(words, at + USED_AT) < Atomics.load(words, oldest + USED_AT)) oldest = at;
    }
    const isInUse =
      Atomics.load(words, oldest + TAG) !== 0 &&
      second - Atomics.load(words, oldest + USED_AT) <= RATE_WINDOW_SECONDS;
    if (isInUse) this.evictions++;
    Atomics.store(words, oldest + TAG, 0);
    for (let bucket = 0; bucket < BUCKETS; bucket++) Atomics.store(words, oldest + bucket, 0);
    Atomics.store(words, oldest + USED_AT, second);
    Atomics.store(words, oldest + TAG, tag);
    return oldest;
  }

  // Adds one request to the current second and returns the number in the window.
  #add(at: number, second: number): number {
    const words = this.#words;
    const current = at + (second % BUCKETS);
    const stamp = stampOf(second);
    for (;;) {
      const value = Atomics.load(words, current);
      const isSame = value >>> COUNT_BITS === stamp;
      const next = isSame ? value + 1 : (stamp << COUNT_BITS) | 1;
      if (isSame && (value & COUNT_MASK) === COUNT_MASK) break;
      if (Atomics.compareExchange(words, current, value, next) === value) break;
    }
    let sum = 0;
    let oldest = second;
    const first = Math.max(0, second - RATE_WINDOW_SECONDS);
    let bucket = first % BUCKETS;
    let lap = stampOf(first);
    for (let past = first; past <= second; past++) {
      const value = Atomics.load(words, at + bucket);
      if (value >>> COUNT_BITS === lap) {
        const count = value & COUNT_MASK;
        if (count > 0 && past < oldest) oldest = past;
        sum += count;
      }
      if (++bucket < BUCKETS) continue;
      bucket = 0;
      lap = lap === STAMP_MASK ? 1 : lap + 1;
    }
    this.resetSeconds = oldest + RATE_WINDOW_SECONDS + 1 - second;
    return sum;
  }

  #withdraw(at: number, second: number): void {
    const words = this.#words;
    const current = at + (second % BUCKETS);
    for (;;) {
      const value = Atomics.load(words, current);
      if (value >>> COUNT_BITS !== stampOf(second) || (value & COUNT_MASK) === 0) return;
      if (Atomics.compareExchange(words, current, value, value - 1) === value) return;
    }
  }
}

// The lap of a second around the buckets, never 0, so that an unused bucket belongs to no second.
function stampOf(second: number): number {
  return (Math.floor(second / BUCKETS) % STAMP_MASK) + 1;
}

function findWay(words: Int32Array, set: number, tag: number): number {
  for (let way = 0; way < WAYS; way++) {
    const at = SETS + (set * WAYS + way) * ENTRY_WORDS;
    if (Atomics.load(words, at + TAG) === tag) return at;
  }
  return -1;
}

// MurmurHash3 (32 bits) over UTF-16 units.
function hash(text: string, seed: number): number {
  let state = seed | 0;
  for (let at = 0; at < text.length; at++) {
    const unit = Math.imul(text.charCodeAt(at), 0xcc9e2d51);
    state ^= Math.imul((unit << 15) | (unit >>> 17), 0x1b873593);
    state = (Math.imul((state << 13) | (state >>> 19), 5) + 0xe6546b64) | 0;
  }
  state ^= text.length;
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return state ^ (state >>> 16);
}
