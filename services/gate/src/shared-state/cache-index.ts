// Lists of the response cache in shared memory: free blocks, free entries, buckets, eviction order; one lock for all.
import {
  BLOCKS,
  BLOCKS_FREE,
  ENTRIES_LIVE,
  ENTRY_INTS,
  EVICTED,
  FIRST_BLOCK,
  FREE_BLOCK,
  FREE_ENTRY,
  HASH_A,
  LAST_BLOCK,
  LOCK,
  LRU_HEAD,
  LRU_NEXT,
  LRU_PREVIOUS,
  LRU_TAIL,
  NEXT,
  OWNER,
  STATE,
  ZOMBIES,
  State,
  type CacheBuffers,
  CacheMemory,
  allocateCacheBuffers,
} from "./cache-memory.ts";

/** Spins before a thread sleeps for the lock, and sleeps before it gives up. */
const SPINS_MAX = 2_000;
const SLEEPS_MAX = 40;

/** Allocates a cache of about `bytes` bytes for `workers` workers; its blocks occupy memory only as they are filled. */
export function allocateCache(bytes: number, workers: number): CacheBuffers {
  const buffers = allocateCacheBuffers(bytes, workers);
  new CacheIndex(new CacheMemory(buffers, workers)).reset();
  return buffers;
}

/**
 * The lists of the cache. Lookups take no lock; everything else holds it for microseconds, and copies no bytes meanwhile.
 * If a thread dies, `recover` returns what it held; if it died with the lock, the lists are rebuilt without any entry.
 */
export class CacheIndex {
  readonly #memory: CacheMemory;
  /** Entries that could not be released because the store was busy. */
  #unreleased: number[] = [];

  constructor(memory: CacheMemory) {
    this.#memory = memory;
  }

  /** Empties the store, which nobody uses yet. */
  reset(): void {
    this.#rebuild(-1);
  }

  /** Releases an entry that is being filled. */
  discard(entry: number): void {
    if (!this.lock()) {
      this.#unreleased.push(entry);
      return;
    }
    this.release(entry);
    this.unlock();
  }

  makeRoom(blocks: number, needsEntry: boolean): boolean {
    const words = this.#memory.words;
    this.#buryZombies();
    for (;;) {
      const hasEntry = !needsEntry || words[FREE_ENTRY] !== 0;
      if (hasEntry && words[BLOCKS_FREE]! >= blocks) return true;
      const oldest = words[LRU_TAIL]! - 1;
      if (oldest === -1) return false;
      this.retire(oldest);
      words[EVICTED] = words[EVICTED]! + 1;
    }
  }

  takeEntry(blocks: number): number {
    if (!this.lock()) return -1;
    for (const unreleased of this.#unreleased.splice(0)) this.release(unreleased);
    const words = this.#memory.words;
    let entry = -1;
    if (this.makeRoom(blocks, true)) {
      entry = words[FREE_ENTRY]! - 1;
      const base = this.#memory.at(entry);
      words[FREE_ENTRY] = words[base + NEXT]!;
      words.fill(0, base, base + ENTRY_INTS);
      words[base + OWNER] = this.#memory.thread + 1;
      words[base + FIRST_BLOCK] = this.#takeBlocks(blocks);
      words[base + LAST_BLOCK] = words[base + FIRST_BLOCK]!;
      words[base + BLOCKS] = blocks;
      Atomics.store(words, base + STATE, State.Filling);
    }
    this.unlock();
    return entry;
  }

  // LAST_BLOCK is the block being written, which is the last one of the chain whenever more are needed.
  extend(base: number, blocks: number): boolean {
    if (!this.lock()) return false;
    const words = this.#memory.words;
    const hasRoom = this.makeRoom(blocks, false);
    if (hasRoom) {
      const first = this.#takeBlocks(blocks);
      words[this.#memory.blocksAt + words[base + LAST_BLOCK]! - 1] = first;
      words[base + BLOCKS]! += blocks;
    }
    this.unlock();
    return hasRoom;
  }

  #takeBlocks(count: number): number {
    const words = this.#memory.words;
    const first = words[FREE_BLOCK]!;
    let last = first;
    for (let taken = 1; taken < count; taken++) last = words[this.#memory.blocksAt + last - 1]!;
    words[FREE_BLOCK] = words[this.#memory.blocksAt + last - 1]!;
    words[this.#memory.blocksAt + last - 1] = 0;
    words[BLOCKS_FREE]! -= count;
    return first;
  }

  /** Makes a live entry invisible; its blocks are free when nobody reads them. */
  retire(entry: number): void {
    const words = this.#memory.words;
    const base = this.#memory.at(entry);
    Atomics.store(words, base + STATE, State.Zombie);
    this.#unlinkBucket(base, entry);
    this.unlinkLru(entry);
    words[ENTRIES_LIVE]!--;
    if (this.#isPinned(entry)) this.#makeZombie(entry);
    else this.release(entry);
  }

  #makeZombie(entry: number): void {
    const words = this.#memory.words;
    const base = this.#memory.at(entry);
    Atomics.store(words, base + STATE, State.Zombie);
    words[base + LRU_NEXT] = words[ZOMBIES]!;
    words[ZOMBIES] = entry + 1;
  }

  #buryZombies(): void {
    const words = this.#memory.words;
    let at = words[ZOMBIES]!;
    words[ZOMBIES] = 0;
    while (at !== 0) {
      const entry = at - 1;
      at = words[this.#memory.at(entry) + LRU_NEXT]!;
      if (this.#isPinned(entry)) this.#makeZombie(entry);
      else this.release(entry);
    }
  }

  #isPinned(entry: number): boolean {
    for (let thread = 0; thread < this.#memory.threads; thread++) {
      if (
        Atomics.load(
          this.#memory.words,
          this.#memory.pinsAt + thread * this.#memory.blocks + entry,
        ) !== 0
      )
        return true;
    }
    return false;
  }

  /** Frees the blocks of an entry that is in no list, and the entry. */
  release(entry: number): void {
    const words = this.#memory.words;
    const base = this.#memory.at(entry);
    const count = words[base + BLOCKS]!;
    let last = words[base + FIRST_BLOCK]!;
    for (let left = count; left > 1; left--) last = words[this.#memory.blocksAt + last - 1]!;
    if (count > 0) {
      words[this.#memory.blocksAt + last - 1] = words[FREE_BLOCK]!;
      words[FREE_BLOCK] = words[base + FIRST_BLOCK]!;
      words[BLOCKS_FREE]! += count;
    }
    this.#freeEntry(entry);
  }

  #freeEntry(entry: number): void {
    const words = this.#memory.words;
    const base = this.#memory.at(entry);
    Atomics.store(words, base + STATE, State.Free);
    words[base + BLOCKS] = 0;
    words[base + NEXT] = words[FREE_ENTRY]!;
    words[FREE_ENTRY] = entry + 1;
  }

  #unlinkBucket(base: number, entry: number): void {
    const words = this.#memory.words;
    let at = this.#memory.bucketsAt + (words[base + HASH_A]! & this.#memory.bucketMask);
    while (words[at] !== entry + 1 && words[at] !== 0) {
      at = this.#memory.at(words[at]! - 1) + NEXT;
    }
    if (words[at] === entry + 1) Atomics.store(words, at, words[base + NEXT]!);
  }

  linkLru(entry: number): void {
    const words = this.#memory.words;
    const base = this.#memory.at(entry);
    const head = words[LRU_HEAD]!;
    words[base + LRU_PREVIOUS] = 0;
    words[base + LRU_NEXT] = head;
    if (head === 0) words[LRU_TAIL] = entry + 1;
    else words[this.#memory.at(head - 1) + LRU_PREVIOUS] = entry + 1;
    words[LRU_HEAD] = entry + 1;
  }

  unlinkLru(entry: number): void {
    const words = this.#memory.words;
    const base = this.#memory.at(entry);
    const previous = words[base + LRU_PREVIOUS]!;
    const next = words[base + LRU_NEXT]!;
    if (previous === 0) words[LRU_HEAD] = next;
    else words[this.#memory.at(previous - 1) + LRU_NEXT] = next;
    if (next === 0) words[LRU_TAIL] = previous;
    else words[this.#memory.at(next - 1) + LRU_PREVIOUS] = previous;
  }

  // Keeps the blocks that live threads are reading or filling.
  #rebuild(deadThread: number): void {
    const words = this.#memory.words;
    const used = new Uint8Array(this.#memory.blocks);
    words.fill(0, this.#memory.bucketsAt, this.#memory.entriesAt);
    words[LRU_HEAD] = words[LRU_TAIL] = words[FREE_ENTRY] = words[FREE_BLOCK] = 0;
    words[ENTRIES_LIVE] = words[ZOMBIES] = words[BLOCKS_FREE] = 0;
    for (let entry = this.#memory.blocks - 1; entry >= 0; entry--) {
      const base = this.#memory.at(entry);
      const state = words[base + STATE]!;
      const isFilled = state === State.Filling && words[base + OWNER] !== deadThread + 1;
      const isRead = state !== State.Filling && state !== State.Free && this.#isPinned(entry);
      if (isFilled || isRead) {
        this.#markChain(base, used);
        if (isRead) this.#makeZombie(entry);
      } else if (deadThread === -1) {
        words[base + NEXT] = words[FREE_ENTRY]!;
        words[FREE_ENTRY] = entry + 1;
      } else this.#freeEntry(entry);
    }
    for (let block = this.#memory.blocks - 1; block >= 0; block--) {
      if (used[block] === 1) continue;
      words[this.#memory.blocksAt + block] = words[FREE_BLOCK]!;
      words[FREE_BLOCK] = block + 1;
      words[BLOCKS_FREE] += 1;
    }
  }

  #markChain(base: number, used: Uint8Array): void {
    let block = this.#memory.words[base + FIRST_BLOCK]!;
    for (
      let left = this.#memory.words[base + BLOCKS]!;
      left > 0 && block > 0 && block <= this.#memory.blocks;
      left--
    ) {
      used[block - 1] = 1;
      block = this.#memory.words[this.#memory.blocksAt + block - 1]!;
    }
  }

  /** Returns what a worker that has ended held. If it held the lock, everything stored is dropped. For the control plane. */
  recover(thread: number): void {
    const words = this.#memory.words;
    for (let entry = 0; entry < this.#memory.blocks; entry++) {
      const pin = this.#memory.pinsAt + thread * this.#memory.blocks + entry;
      // Unused words are only read: writing to them would occupy memory.
      if (words[pin] !== 0) Atomics.store(words, pin, 0);
    }
    if (Atomics.compareExchange(words, LOCK, thread + 1, this.#memory.thread + 1) === thread + 1) {
      this.#rebuild(thread);
      this.unlock();
      return;
    }
    if (!this.lock()) return;
    for (let entry = 0; entry < this.#memory.blocks; entry++) {
      const base = this.#memory.at(entry);
      if (words[base + STATE] === State.Filling && words[base + OWNER] === thread + 1)
        this.release(entry);
    }
    this.unlock();
  }

  // A thread that died with the lock must not block the others: they give up, and the control plane recovers it.
  lock(): boolean {
    const words = this.#memory.words;
    const own = this.#memory.thread + 1;
    for (let spins = 0; spins < SPINS_MAX; spins++) {
      if (Atomics.compareExchange(words, LOCK, 0, own) === 0) return true;
    }
    for (let sleeps = 0; sleeps < SLEEPS_MAX; sleeps++) {
      const holder = Atomics.load(words, LOCK);
      if (holder !== 0) Atomics.wait(words, LOCK, holder, 1);
      if (Atomics.compareExchange(words, LOCK, 0, own) === 0) return true;
    }
    return false;
  }

  unlock(): void {
    Atomics.store(this.#memory.words, LOCK, 0);
    Atomics.notify(this.#memory.words, LOCK, 1);
  }
}
