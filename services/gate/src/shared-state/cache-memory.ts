// The layout of the response cache in shared memory.

/** Bytes of one block. */
export const BLOCK_BYTES = 4_096;
/** Most entries and blocks of a store. */
const BLOCKS_MAX = 4_194_304;
/** Longest key: it is compared within the first block. */
export const CACHE_KEY_BYTES_MAX = 3_072;
/** Keys whose earlier responses are invalidated at once. */
export const GENERATIONS = 65_536;

// Header words.
export const LOCK = 0;
export const LRU_HEAD = 1;
export const LRU_TAIL = 2;
export const FREE_ENTRY = 3;
export const FREE_BLOCK = 4;
export const BLOCKS_FREE = 5;
export const ENTRIES_LIVE = 6;
export const ZOMBIES = 7;
export const PURGES = 8;
export const EVICTED = 9;
export const HEADER_INTS = 16;

// Words of an entry. References are indices plus one; 0 is none.
export const STATE = 0;
export const HASH_A = 1;
export const HASH_B = 2;
export const NEXT = 3;
export const LRU_PREVIOUS = 4;
export const LRU_NEXT = 5;
export const FIRST_BLOCK = 6;
export const LAST_BLOCK = 7;
export const BLOCKS = 8;
export const KEY_BYTES = 9;
export const TAG_BYTES = 10;
export const HEAD_BYTES = 11;
export const BODY_BYTES = 12;
export const STATUS = 13;
export const FLAGS = 14;
export const OWNER = 15;
export const GENERATION = 16;
export const GENERATION_AT = 17;
export const PURGES_SEEN = 18;
export const FILLED = 19;
export const ENTRY_INTS = 20;

// Times of an entry in milliseconds.
export const RESPONSE_AT = 0;
export const INITIAL_AGE = 1;
export const LIFETIME = 2;
export const STALE_WHILE_REVALIDATE = 3;
export const STALE_IF_ERROR = 4;
export const TOUCHED_AT = 5;
export const ENTRY_TIMES = 6;

/** States of an entry. */
export const State = {
  Free: 0,
  /** A worker is receiving it. */
  Filling: 1,
  Live: 2,
  /** Removed, while readers still use its blocks. */
  Zombie: 3,
} as const;

/** Memory of the response cache. */
export interface CacheBuffers {
  /** Number of blocks and of entries. */
  blocks: number;
  /** Threads that may use it: the workers, then the control plane. */
  threads: number;
  words: SharedArrayBuffer;
  times: SharedArrayBuffer;
  arena: SharedArrayBuffer;
}

/** The key of a stored response with its hashes. `bytes` may be a view of a scratch buffer. */
export interface CacheKey {
  readonly bytes: Buffer;
  readonly hashA: number;
  readonly hashB: number;
  /** Hash of the part of the key that all variants of a resource share. */
  readonly resourceHash: number;
}

/** Properties of a response to store. Times are in milliseconds. */
export interface CacheRecord {
  readonly status: number;
  readonly flags: number;
  /** Time of the response by the wall clock. */
  readonly responseAtMs: number;
  readonly initialAgeMs: number;
  readonly lifetimeMs: number;
  readonly staleWhileRevalidateMs: number;
  readonly staleIfErrorMs: number;
}

/** The state of invalidations when a request began: a response is not stored if its resource was invalidated since. */
export interface CacheMoment {
  readonly generation: number;
  readonly purges: number;
}

/** Allocates memory of about `bytes` bytes for `workers` workers; `CacheIndex.reset` prepares it. */
export function allocateCacheBuffers(bytes: number, workers: number): CacheBuffers {
  const blocks = Math.min(BLOCKS_MAX, Math.max(16, Math.floor(bytes / BLOCK_BYTES)));
  const threads = workers + 1;
  const ints =
    HEADER_INTS + GENERATIONS + countBuckets(blocks) + blocks * (ENTRY_INTS + 1 + threads);
  return {
    blocks,
    threads,
    words: new SharedArrayBuffer(ints * 4),
    times: new SharedArrayBuffer(blocks * ENTRY_TIMES * 8),
    arena: new SharedArrayBuffer(blocks * BLOCK_BYTES),
  };
}

/**
 * The memory of the cache as one thread sees it.
 *
 * ```text
 *   words   header | generations | buckets | entries | next block of each block | pins [thread][entry]
 *   times   of each entry
 *   arena   blocks; the chain of an entry holds key, tags, head, body
 * ```
 */
export class CacheMemory {
  readonly words: Int32Array;
  readonly times: Float64Array;
  readonly arena: Buffer;
  readonly blocks: number;
  readonly threads: number;
  readonly thread: number;
  readonly bucketsAt = HEADER_INTS + GENERATIONS;
  readonly bucketMask: number;
  readonly entriesAt: number;
  readonly blocksAt: number;
  readonly pinsAt: number;

  /** `thread` is the worker's index, or the number of workers for the control plane. */
  constructor({ blocks, threads, words, times, arena }: CacheBuffers, thread: number) {
    this.words = new Int32Array(words);
    this.times = new Float64Array(times);
    this.arena = Buffer.from(arena);
    this.blocks = blocks;
    this.threads = threads;
    this.thread = thread;
    this.bucketMask = countBuckets(blocks) - 1;
    this.entriesAt = this.bucketsAt + countBuckets(blocks);
    this.blocksAt = this.entriesAt + blocks * ENTRY_INTS;
    this.pinsAt = this.blocksAt + blocks;
  }

  /** Position of the first word of an entry. */
  at(entry: number): number {
    return this.entriesAt + entry * ENTRY_INTS;
  }

  /** Position of this thread's pin of an entry. */
  pinAt(entry: number): number {
    return this.pinsAt + this.thread * this.blocks + entry;
  }
}

function countBuckets(blocks: number): number {
  return 2 ** Math.ceil(Math.log2(blocks));
}
