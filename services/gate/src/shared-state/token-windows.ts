// Tokens of AI requests in any 60 s, by key: one table for all workers.

/** Length of the window in seconds. */
export const TOKEN_WINDOW_SECONDS = 60;

const SETS = 2_048;
const WAYS = 8;
/** One second more than the window, because a window spans parts of 61 seconds, and one that may be overwritten. */
const BUCKETS = 62;
const TAG = BUCKETS;
const USED_AT = BUCKETS + 1;
const WORDS = BUCKETS + 2;
/** The upper bits of a bucket are its lap, the lower ones its tokens. */
const TOKEN_BITS = 44n;
const TOKEN_MASK = (1n << TOKEN_BITS) - 1n;
const LAP_MASK = 0xffff;

/** Size of the shared memory of {@link TokenWindows}; occupied as it is used. */
export const TOKEN_WINDOWS_BYTES = SETS * WAYS * WORDS * 8;

/** Tokens that were taken from a window, to settle them later. */
export interface TakenTokens {
  readonly entry: number;
  readonly tag: bigint;
  readonly second: number;
  readonly tokens: number;
}

/** Outcome of {@link TokenWindows.take}. */
export interface TokenVerdict {
  /** Undefined if the tokens would exceed the limit. */
  readonly taken: TakenTokens | undefined;
  /** Tokens left in the window. */
  readonly remaining: number;
  /** Seconds until tokens of the window expire. */
  readonly resetSeconds: number;
}

/**
 * Counts tokens by key and second, like `SharedRateTable` counts requests: a request adds its tokens, then reads the sum, and
 * withdraws them if that exceeds the limit. A key that is new in a full set replaces the one that was used least recently.
 *
 *     BigInt64  [SETS][WAYS][64]   [0 … 61] by second: 20 bits of its lap, 44 bits of tokens   [62] tag   [63] second of use
 */
export class TokenWindows {
  readonly #words: BigInt64Array;

  constructor(buffer: SharedArrayBuffer) {
    this.#words = new BigInt64Array(buffer);
  }

  /** Takes tokens of a key at `nowMs`. */
  take(tag: bigint, tokens: number, limit: number, nowMs: number): TokenVerdict {
    const second = Math.floor(nowMs / 1_000);
    const entry = this.#findEntry(tag, second);
    this.#add(entry, second, BigInt(tokens));
    const { sum, resetSeconds } = this.#sum(entry, second);
    if (sum <= limit) {
      const taken = { entry, tag, second, tokens };
      return { taken, remaining: limit - sum, resetSeconds };
    }
    this.#add(entry, second, BigInt(-tokens));
    return { taken: undefined, remaining: Math.max(0, limit - sum + tokens), resetSeconds };
  }

  /** Replaces taken tokens by those that were used; without effect once their second has left the window. */
  settle({ entry, tag, second, tokens }: TakenTokens, used: number): void {
    if (Atomics.load(this.#words, entry + TAG) !== tag) return;
    const bucket = entry + (second % BUCKETS);
    if (Atomics.load(this.#words, bucket) >> TOKEN_BITS !== lapOf(second)) return;
    this.#add(entry, second, BigInt(used - tokens));
  }

  #findEntry(tag: bigint, second: number): number {
    const words = this.#words;
    const set = Number(BigInt.asUintN(32, tag)) % SETS;
    let oldest = set * WAYS * WORDS;
    for (let way = 0; way < WAYS; way++) {
      const entry = (set * WAYS + way) * WORDS;
      const found = Atomics.load(words, entry + TAG);
      if (found === tag) {
        Atomics.store(words, entry + USED_AT, BigInt(second));
        return entry;
      }
      const claimed = found === 0n ? Atomics.compareExchange(words, entry + TAG, 0n, tag) : found;
      if (found === 0n && (claimed === 0n || claimed === tag)) return entry;
      if (Atomics.load(words, entry + USED_AT) < Atomics.load(words, oldest + USED_AT))
        oldest = entry;
    }
    for (let bucket = 0; bucket < BUCKETS; bucket++) Atomics.store(words, oldest + bucket, 0n);
    Atomics.store(words, oldest + USED_AT, BigInt(second));
    Atomics.store(words, oldest + TAG, tag);
    return oldest;
  }

  #add(entry: number, second: number, tokens: bigint): void {
    const words = this.#words;
    const bucket = entry + (second % BUCKETS);
    const lap = lapOf(second);
    for (;;) {
      const value = Atomics.load(words, bucket);
      const known = value >> TOKEN_BITS === lap ? value & TOKEN_MASK : 0n;
      const sum = known + tokens < 0n ? 0n : known + tokens;
      const next = (lap << TOKEN_BITS) | (sum & TOKEN_MASK);
      if (Atomics.compareExchange(words, bucket, value, next) === value) return;
    }
  }

  #sum(entry: number, second: number): { sum: number; resetSeconds: number } {
    let sum = 0;
    let oldest = second;
    for (let past = Math.max(0, second - TOKEN_WINDOW_SECONDS); past <= second; past++) {
      const value = Atomics.load(this.#words, entry + (past % BUCKETS));
      if (value >> TOKEN_BITS !== lapOf(past)) continue;
      const tokens = Number(value & TOKEN_MASK);
      if (tokens > 0 && past < oldest) oldest = past;
      sum += tokens;
    }
    return { sum, resetSeconds: oldest + TOKEN_WINDOW_SECONDS + 1 - second };
  }
}

// The lap of a second around the buckets, never 0, so that an unused bucket belongs to no second.
function lapOf(second: number): bigint {
  return BigInt((Math.floor(second / BUCKETS) % LAP_MASK) + 1);
}
