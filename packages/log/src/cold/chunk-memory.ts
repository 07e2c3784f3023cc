// Memory of chunks that are being fetched, and of the last ones, which their readers want again. It is used again: memory
// that is freshly taken for each chunk costs page faults and collections.

/** Chunks that are kept after they have been written to the cache. */
const KEPT_MAX = 8;

const NO_BYTES = Buffer.alloc(0);
const NOTHING = Promise.resolve();

/** A chunk in memory, or on its way there. */
export interface HeldChunk {
  /** Empty until its fetch has claimed memory. */
  bytes: Buffer;
  /** Rejects if it cannot be fetched. */
  arrived: Promise<unknown>;
  /** Readers, and the writer to the cache: its memory is theirs. */
  users: number;
  isDone: boolean;
}

/** Chunks by name, the ones that came last at the end. */
export class ChunkMemory {
  readonly #chunkBytes: number;
  readonly #held = new Map<string, HeldChunk>();
  readonly #spare: Buffer[] = [];

  constructor(chunkBytes: number) {
    this.#chunkBytes = chunkBytes;
  }

  get(name: string): HeldChunk | undefined {
    return this.#held.get(name);
  }

  /** Holds a chunk; its fetch is its first user. */
  hold(name: string, fetch: (held: HeldChunk) => Promise<void>): HeldChunk {
    const held: HeldChunk = { bytes: NO_BYTES, arrived: NOTHING, users: 1, isDone: false };
    this.#held.set(name, held);
    held.arrived = fetch(held);
    return held;
  }

  /** Memory for a chunk of `length` bytes. */
  claim(held: HeldChunk, length: number): Buffer {
    held.bytes = this.#take().subarray(0, length);
    return held.bytes;
  }

  /** A user no longer needs the chunk. */
  release(name: string, held: HeldChunk): void {
    held.users -= 1;
    if (held.users > 0) return;
    if (this.#held.get(name) !== held) this.#giveBack(held);
    else if (this.#held.size > KEPT_MAX) this.#evict();
  }

  /** The next reader fetches the chunk again. */
  forget(name: string): void {
    const held = this.#held.get(name);
    if (held === undefined) return;
    this.#held.delete(name);
    if (held.users === 0) this.#giveBack(held);
  }

  /** Gives all memory back that nobody uses. */
  clear(): void {
    for (const [name, held] of this.#held) if (held.users === 0) this.#held.delete(name);
    this.#spare.length = 0;
  }

  #take(): Buffer {
    const spare = this.#spare.pop();
    if (spare !== undefined) return spare;
    if (this.#held.size >= KEPT_MAX && this.#evict()) return this.#spare.pop()!;
    return Buffer.allocUnsafeSlow(this.#chunkBytes);
  }

  /** Makes the memory of the oldest unused chunk spare. */
  #evict(): boolean {
    for (const [name, held] of this.#held) {
      if (held.users > 0 || !held.isDone) continue;
      this.forget(name);
      return true;
    }
    return false;
  }

  #giveBack({ bytes }: HeldChunk): void {
    if (bytes.length === 0 || this.#spare.length >= KEPT_MAX) return;
    this.#spare.push(Buffer.from(bytes.buffer, 0, this.#chunkBytes));
  }
}
