// The response cache: one store for all workers, in blocks of shared memory.
import { CacheIndex } from "./cache-index.ts";
import {
  BLOCKS,
  BLOCK_BYTES,
  BODY_BYTES,
  CACHE_KEY_BYTES_MAX,
  ENTRIES_LIVE,
  ENTRY_TIMES,
  FILLED,
  FIRST_BLOCK,
  FLAGS,
  GENERATION,
  GENERATIONS,
  GENERATION_AT,
  HASH_A,
  HASH_B,
  HEADER_INTS,
  HEAD_BYTES,
  INITIAL_AGE,
  KEY_BYTES,
  LAST_BLOCK,
  LIFETIME,
  NEXT,
  OWNER,
  PURGES,
  PURGES_SEEN,
  RESPONSE_AT,
  STALE_IF_ERROR,
  STALE_WHILE_REVALIDATE,
  STATE,
  STATUS,
  TAG_BYTES,
  TOUCHED_AT,
  BLOCKS_FREE,
  EVICTED,
  State,
  type CacheBuffers,
  type CacheKey,
  type CacheMoment,
  type CacheRecord,
  CacheMemory,
} from "./cache-memory.ts";

/** An entry may occupy at most this part of the store. */
const ENTRY_SHARE = 1 / 8;
/** Entries of a chain that a lookup visits: it may run into a chain that changes meanwhile. */
const CHAIN_MAX = 64;
const TOUCH_AFTER_MS = 1_000;

/**
 * One store of responses. A lookup pins an entry, then checks that it is still live with this key; blocks of an entry that
 * was evicted are reused when no thread pins it.
 */
export class SharedCache {
  readonly #memory: CacheMemory;
  readonly #index: CacheIndex;

  /** `thread` is the worker's index, or the number of workers for the control plane. */
  constructor(buffers: CacheBuffers, thread: number) {
    this.#memory = new CacheMemory(buffers, thread);
    this.#index = new CacheIndex(this.#memory);
  }

  /** Stored responses. */
  get entries(): number {
    return Atomics.load(this.#memory.words, ENTRIES_LIVE);
  }

  /** Bytes of blocks in use. */
  get bytes(): number {
    const { words, blocks } = this.#memory;
    return (blocks - Atomics.load(words, BLOCKS_FREE)) * BLOCK_BYTES;
  }

  /** Bytes of all blocks. */
  get bytesMax(): number {
    return this.#memory.blocks * BLOCK_BYTES;
  }

  /** Responses that were evicted because the store was full. */
  get evicted(): number {
    return Atomics.load(this.#memory.words, EVICTED) >>> 0;
  }

  /** Most bytes of one entry. */
  get entryBytesMax(): number {
    return Math.floor(this.#memory.blocks * ENTRY_SHARE) * BLOCK_BYTES;
  }

  /** Returns what a worker that has ended held. For the control plane. */
  recover(thread: number): void {
    this.#index.recover(thread);
  }

  /** The entry with this key, pinned, or -1. `unpin` it. */
  find(key: CacheKey): number {
    const words = this.#memory.words;
    let at = Atomics.load(words, this.#memory.bucketsAt + (key.hashA & this.#memory.bucketMask));
    for (let steps = 0; at !== 0 && steps < CHAIN_MAX; steps++) {
      const entry = at - 1;
      const base = this.#memory.at(entry);
      if (this.#isLive(base, key)) {
        const pin = this.#memory.pinAt(entry);
        Atomics.add(words, pin, 1);
        if (this.#isLive(base, key) && this.#hasKey(base, key) && this.#isCurrent(base))
          return entry;
        Atomics.sub(words, pin, 1);
      }
      at = Atomics.load(words, base + NEXT);
    }
    return -1;
  }

  /** Ends the use of an entry that `find` returned. */
  unpin(entry: number): void {
    Atomics.sub(this.#memory.words, this.#memory.pinAt(entry), 1);
  }

  /** Moves a pinned entry to the end of the eviction order, at most once a second. */
  touch(entry: number, nowMs: number): void {
    const at = entry * ENTRY_TIMES + TOUCHED_AT;
    if (nowMs - this.#memory.times[at]! < TOUCH_AFTER_MS) return;
    this.#memory.times[at] = nowMs;
    if (!this.#index.lock()) return;
    if (this.#memory.words[this.#memory.at(entry) + STATE] === State.Live) {
      this.#index.unlinkLru(entry);
      this.#index.linkLru(entry);
    }
    this.#index.unlock();
  }

  /** Properties of a pinned entry. */
  read(entry: number): CacheRecord & { headBytes: number; bodyBytes: number } {
    const base = this.#memory.at(entry);
    const time = entry * ENTRY_TIMES;
    const words = this.#memory.words;
    const times = this.#memory.times;
    return {
      status: words[base + STATUS]!,
      flags: words[base + FLAGS]!,
      headBytes: words[base + HEAD_BYTES]!,
      bodyBytes: words[base + BODY_BYTES]!,
      responseAtMs: times[time + RESPONSE_AT]!,
      initialAgeMs: times[time + INITIAL_AGE]!,
      lifetimeMs: times[time + LIFETIME]!,
      staleWhileRevalidateMs: times[time + STALE_WHILE_REVALIDATE]!,
      staleIfErrorMs: times[time + STALE_IF_ERROR]!,
    };
  }

  /** The head of a pinned entry, copied to `target` at `to`. */
  copyHead(entry: number, target: Buffer, to: number): void {
    const base = this.#memory.at(entry);
    const from = this.#memory.words[base + KEY_BYTES]! + this.#memory.words[base + TAG_BYTES]!;
    this.#copy(base, from, from + this.#memory.words[base + HEAD_BYTES]!, target, to);
  }

  /** Bytes `[from, to)` of the body of a pinned entry: a view if `mayView` and they are in one block, else a copy. */
  readBody(entry: number, from: number, to: number, mayView: boolean): Buffer {
    const base = this.#memory.at(entry);
    const start = this.#bodyStart(base) + from;
    const size = to - from;
    const within = start % BLOCK_BYTES;
    if (mayView && start < BLOCK_BYTES && within + size <= BLOCK_BYTES) {
      const at = this.#memory.words[base + FIRST_BLOCK]! * BLOCK_BYTES - BLOCK_BYTES + within;
      return this.#memory.arena.subarray(at, at + size);
    }
    const bytes = Buffer.allocUnsafe(size);
    this.#copy(base, start, start + size, bytes, 0);
    return bytes;
  }

  /** The tags of a pinned entry as stored. */
  readTags(entry: number): string {
    const base = this.#memory.at(entry);
    const from = this.#memory.words[base + KEY_BYTES]!;
    const bytes = Buffer.allocUnsafe(this.#memory.words[base + TAG_BYTES]!);
    this.#copy(base, from, from + bytes.length, bytes, 0);
    return bytes.toString("latin1");
  }

  /** The state of invalidations of a resource, to be taken before its response is requested. */
  readMoment(resourceHash: number): CacheMoment {
    const at = HEADER_INTS + (resourceHash & (GENERATIONS - 1));
    return {
      generation: Atomics.load(this.#memory.words, at),
      purges: Atomics.load(this.#memory.words, PURGES),
    };
  }

  /** Starts an entry that `publish` makes visible; -1 if there is no space. `discard` it otherwise. */
  begin(
    key: CacheKey,
    tags: Buffer,
    head: Buffer,
    record: CacheRecord,
    moment: CacheMoment,
  ): number {
    const size = key.bytes.length + tags.length + head.length;
    if (key.bytes.length > CACHE_KEY_BYTES_MAX || size > this.entryBytesMax) return -1;
    const entry = this.#index.takeEntry(Math.ceil(size / BLOCK_BYTES));
    if (entry === -1) return -1;
    const words = this.#memory.words;
    const base = this.#memory.at(entry);
    words[base + HASH_A] = key.hashA;
    words[base + HASH_B] = key.hashB;
    words[base + GENERATION_AT] = key.resourceHash & (GENERATIONS - 1);
    words[base + GENERATION] = moment.generation;
    words[base + PURGES_SEEN] = moment.purges;
    words[base + KEY_BYTES] = key.bytes.length;
    words[base + TAG_BYTES] = tags.length;
    words[base + HEAD_BYTES] = head.length;
    words[base + STATUS] = record.status;
    words[base + FLAGS] = record.flags;
    const time = entry * ENTRY_TIMES;
    const times = this.#memory.times;
    times[time + RESPONSE_AT] = record.responseAtMs;
    times[time + INITIAL_AGE] = record.initialAgeMs;
    times[time + LIFETIME] = record.lifetimeMs;
    times[time + STALE_WHILE_REVALIDATE] = record.staleWhileRevalidateMs;
    times[time + STALE_IF_ERROR] = record.staleIfErrorMs;
    times[time + TOUCHED_AT] = record.responseAtMs;
    for (const bytes of [key.bytes, tags, head]) this.#write(base, bytes);
    return entry;
  }

  /** Appends body bytes to an entry that was begun; false if it becomes too large or there is no space. */
  append(entry: number, bytes: Buffer): boolean {
    const base = this.#memory.at(entry);
    const words = this.#memory.words;
    const size = words[base + FILLED]! + bytes.length;
    if (size > this.entryBytesMax) return false;
    const missing = Math.ceil(size / BLOCK_BYTES) - words[base + BLOCKS]!;
    if (missing > 0 && !this.#index.extend(base, missing)) return false;
    words[base + BODY_BYTES]! += bytes.length;
    this.#write(base, bytes);
    return true;
  }

  /**
   * Makes an entry visible in place of the one with its key; false, and discarded, if its resource was invalidated since it
   * was requested.
   */
  publish(entry: number): boolean {
    const words = this.#memory.words;
    const base = this.#memory.at(entry);
    if (!this.#index.lock()) {
      this.discard(entry);
      return false;
    }
    const isValid =
      this.#isCurrent(base) &&
      words[PURGES] === words[base + PURGES_SEEN] &&
      words[base + STATE] === State.Filling;
    if (isValid) {
      const bucket = this.#memory.bucketsAt + (words[base + HASH_A]! & this.#memory.bucketMask);
      this.#retireSame(bucket, base);
      Atomics.store(words, base + NEXT, words[bucket]!);
      words[base + OWNER] = 0;
      Atomics.store(words, base + STATE, State.Live);
      Atomics.store(words, bucket, entry + 1);
      this.#index.linkLru(entry);
      words[ENTRIES_LIVE]!++;
    } else this.#index.release(entry);
    this.#index.unlock();
    return isValid;
  }

  /** Gives up an entry that was begun. */
  discard(entry: number): void {
    this.#index.discard(entry);
  }

  /** Invalidates all stored responses of a resource, and those that are being received. */
  invalidate(resourceHash: number): void {
    Atomics.add(this.#memory.words, HEADER_INTS + (resourceHash & (GENERATIONS - 1)), 1);
  }

  /**
   * Removes the entries whose key and tags `matches` accepts, and drops the responses that are being received. `isWhole` is
   * false if the store was busy. For the control plane.
   */
  purge(matches: (key: Buffer, readTags: () => string) => boolean): {
    removed: number;
    isWhole: boolean;
  } {
    const { words, blocks } = this.#memory;
    Atomics.add(words, PURGES, 1);
    let removed = 0;
    let isWhole = true;
    for (let entry = 0; entry < blocks && isWhole; entry++) {
      const state = this.#memory.at(entry) + STATE;
      if (Atomics.load(words, state) !== State.Live) continue;
      const pin = this.#memory.pinAt(entry);
      Atomics.add(words, pin, 1);
      const isMatch = Atomics.load(words, state) === State.Live && this.#matches(entry, matches);
      isWhole = !isMatch || this.#index.lock();
      Atomics.sub(words, pin, 1);
      if (!isMatch || !isWhole) continue;
      if (words[state] === State.Live) {
        this.#index.retire(entry);
        removed++;
      }
      this.#index.unlock();
    }
    return { removed, isWhole };
  }

  #matches(entry: number, matches: Parameters<SharedCache["purge"]>[0]): boolean {
    const base = this.#memory.at(entry);
    return this.#isCurrent(base) && matches(this.#readKey(base), () => this.readTags(entry));
  }

  #isLive(base: number, key: CacheKey): boolean {
    const words = this.#memory.words;
    return (
      Atomics.load(words, base + HASH_A) === key.hashA &&
      Atomics.load(words, base + HASH_B) === key.hashB &&
      Atomics.load(words, base + STATE) === State.Live
    );
  }

  #isCurrent(base: number): boolean {
    const words = this.#memory.words;
    const at = HEADER_INTS + words[base + GENERATION_AT]!;
    return Atomics.load(words, at) === words[base + GENERATION]!;
  }

  #hasKey(base: number, { bytes }: CacheKey): boolean {
    if (this.#memory.words[base + KEY_BYTES] !== bytes.length) return false;
    const at = (this.#memory.words[base + FIRST_BLOCK]! - 1) * BLOCK_BYTES;
    return this.#memory.arena.compare(bytes, 0, bytes.length, at, at + bytes.length) === 0;
  }

  #readKey(base: number): Buffer {
    const at = (this.#memory.words[base + FIRST_BLOCK]! - 1) * BLOCK_BYTES;
    return this.#memory.arena.subarray(at, at + this.#memory.words[base + KEY_BYTES]!);
  }

  #bodyStart(base: number): number {
    const words = this.#memory.words;
    return words[base + KEY_BYTES]! + words[base + TAG_BYTES]! + words[base + HEAD_BYTES]!;
  }

  #copy(base: number, from: number, to: number, target: Buffer, at: number): void {
    const words = this.#memory.words;
    let block = words[base + FIRST_BLOCK]! - 1;
    let offset = from;
    for (; offset >= BLOCK_BYTES; offset -= BLOCK_BYTES)
      block = words[this.#memory.blocksAt + block]! - 1;
    let left = to - from;
    let into = at;
    while (left > 0) {
      const size = Math.min(left, BLOCK_BYTES - offset);
      const start = block * BLOCK_BYTES + offset;
      this.#memory.arena.copy(target, into, start, start + size);
      into += size;
      left -= size;
      offset = 0;
      if (left > 0) block = words[this.#memory.blocksAt + block]! - 1;
    }
  }

  // The last block of the chain that holds bytes is found from FILLED; blocks after it are empty.
  #write(base: number, bytes: Buffer): void {
    const words = this.#memory.words;
    let filled = words[base + FILLED]!;
    let block = words[base + LAST_BLOCK]! - 1;
    let from = 0;
    while (from < bytes.length) {
      const offset = filled % BLOCK_BYTES;
      if (offset === 0 && filled > 0) block = words[this.#memory.blocksAt + block]! - 1;
      const size = Math.min(bytes.length - from, BLOCK_BYTES - offset);
      bytes.copy(this.#memory.arena, block * BLOCK_BYTES + offset, from, from + size);
      from += size;
      filled += size;
    }
    words[base + FILLED] = filled;
    words[base + LAST_BLOCK] = block + 1;
  }

  #retireSame(bucket: number, base: number): void {
    const words = this.#memory.words;
    const hashA = words[base + HASH_A]!;
    const hashB = words[base + HASH_B]!;
    const key = { bytes: this.#readKey(base), hashA, hashB, resourceHash: 0 };
    for (let at = words[bucket]!; at !== 0;) {
      const other = this.#memory.at(at - 1);
      const next = words[other + NEXT]!;
      if (this.#isLive(other, key) && this.#hasKey(other, key)) this.#index.retire(at - 1);
      at = next;
    }
  }
}
