// Reads objects of the store like files: in chunks that are kept on the disk and fetched once for all readers.
import type { Clock, DiskFile } from "../disk/port.ts";
import { nextTurn, SLICE_BYTES } from "../batch/slice.ts";
import { ColdStoreError } from "../cold-store.ts";
import { LogError } from "../errors.ts";
import type { ColdOptions } from "../types.ts";
import { ChunkCache, chunkName } from "./chunk-cache.ts";
import { ChunkMemory, type HeldChunk } from "./chunk-memory.ts";
import { ColdShare } from "./cold-share.ts";
import { FetchSlots } from "./fetch-slots.ts";

const CHUNK_BYTES = 4 * 1024 * 1024;
/** Chunks fetched ahead of a sequential reader. */
const CHUNKS_AHEAD = 2;
/** Time for which the store may fail before reads fail. */
const PATIENCE_MS = 30_000;
const BACKOFF_MS = 250;
const BACKOFF_MS_MAX = 5_000;
/** Chunks that are being written to the cache while their readers have them already. */
const WRITES_MAX = 2;
/** Interval of asking how late the event loop is, and for how long after the last read. */
const LOOP_TICK_MS = 10;
const LOOP_WATCH_MS = 1_000;
/** Timers are not more exact. */
const WAIT_MS_MIN = 1;
const WAIT_STEP_MS = 100;
/** Objects whose last read chunk is remembered. */
const READERS_MAX = 1_024;

/** The part of a file that readers of segments use. */
export type ReadableFile = Pick<DiskFile, "read">;

/** An object to read: its name, size in bytes, and the uid of its partition. */
export interface ColdFile {
  object: string;
  bytes: number;
  partition: number;
}

/** Options of a `ColdReader`. */
export interface ColdReaderOptions {
  clock: Clock;
  /** True if the disk has room for chunks. */
  hasRoom: () => boolean;
  /** Called with each failure. */
  onFailure: (error: ColdStoreError) => void;
}

interface Chunk extends ColdFile {
  index: number;
  name: string;
  start: number;
  end: number;
}

/**
 * Reads reject with `cold-unavailable` if no store is configured or it has failed for 30 s, and with ENOENT if the object
 * does not exist.
 */
export class ColdReader {
  readonly #options: ColdReaderOptions;
  readonly #slots = new FetchSlots();
  readonly #memory = new ChunkMemory(CHUNK_BYTES);
  readonly #fetches = new Set<Promise<void>>();
  readonly #writes = new Set<Promise<void>>();
  /** The chunk read last, by object. */
  readonly #lastRead = new Map<string, number>();
  readonly #ending = Promise.withResolvers<void>();
  #cold: ColdOptions | undefined;
  #cache: ChunkCache | undefined;
  #failingSinceMs: number | undefined;
  #isClosed = false;
  #watchesLoop = false;
  #lastTakenMs = 0;
  readonly reads = { cache: 0, store: 0 };
  readonly share = new ColdShare();

  constructor(options: ColdReaderOptions) {
    this.#options = options;
  }

  get cold(): ColdOptions | undefined {
    return this.#cold;
  }

  get cacheBytes(): number {
    return this.#cache?.bytes ?? 0;
  }

  /** Sets the store, or none. */
  async use(cold: ColdOptions | undefined): Promise<void> {
    const before = this.#cache;
    const cache = cold && (await ChunkCache.open(cold.cache, cold.cacheBytesMax));
    this.#cold = cold;
    this.#cache = cache;
    this.#failingSinceMs = undefined;
    await before?.close();
  }

  /** The object as a file. Its reads reject with the reason of `signal` once that has fired. */
  open(file: ColdFile, signal?: AbortSignal): ReadableFile {
    return {
      read: async (into, at, length, position) => {
        const end = Math.min(position + length, file.bytes);
        for (let next = position; next < end;) {
          const chunk = chunkAt(file, Math.floor(next / CHUNK_BYTES));
          const count = Math.min(end, chunk.end) - next;
          signal?.throwIfAborted();
          await this.#awaitShare(count, signal);
          await this.#readChunk(chunk, into, at + next - position, count, next - chunk.start);
          next += count;
        }
        return Math.max(0, end - position);
      },
    };
  }

  /** Somebody reads local records: these reads are to leave room. */
  noteLocalRead(): void {
    // Nobody is asked for the time unless there are cold reads.
    if (this.#watchesLoop) this.share.noteLocalRead(this.#options.clock.now());
  }

  /** Removes the chunks of an object from the cache: they may be damaged. */
  async drop(file: ColdFile): Promise<void> {
    for (let index = 0; index * CHUNK_BYTES < file.bytes; index += 1) {
      const name = chunkName(file.object, index);
      this.#memory.forget(name);
      await this.#cache?.remove(name);
    }
  }

  /** Gives disk space back. */
  async shrink(): Promise<void> {
    await this.#cache?.shrink(0);
  }

  /** Lets waiting reads fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#ending.resolve();
    await Promise.allSettled(this.#fetches);
    await Promise.all(this.#writes);
    await this.#cache?.close();
  }

  readonly #pace = (bytes: number): Promise<void> | undefined => {
    const nowMs = this.#options.clock.now();
    this.#lastTakenMs = nowMs;
    if (!this.#watchesLoop) this.#watchLoop();
    const waitMs = this.share.receive(bytes, nowMs);
    return waitMs < WAIT_MS_MIN ? undefined : this.#waitForShare(waitMs);
  };

  // The others may stop using the log meanwhile.
  async #waitForShare(waitMs: number, signal?: AbortSignal): Promise<void> {
    for (let leftMs = waitMs; leftMs > 0; leftMs -= WAIT_STEP_MS) {
      if (this.share.rate === Infinity || this.#isClosed || signal?.aborted === true) return;
      await this.#pause(Math.min(leftMs, WAIT_STEP_MS), signal);
    }
  }

  async #awaitShare(bytes: number, signal: AbortSignal | undefined): Promise<void> {
    const nowMs = this.#options.clock.now();
    this.#lastTakenMs = nowMs;
    if (!this.#watchesLoop) this.#watchLoop();
    const waitMs = this.share.take(bytes, nowMs);
    if (waitMs >= WAIT_MS_MIN) await this.#waitForShare(waitMs, signal);
    if (signal?.aborted === true) this.share.giveBack(bytes);
    signal?.throwIfAborted();
    if (this.#isClosed) throw new LogError("closed", "the log is closed");
  }

  // Asks for the time as long as cold records are read.
  #watchLoop(): void {
    const { clock } = this.#options;
    const dueMs = clock.now() + LOOP_TICK_MS;
    this.#watchesLoop = true;
    clock.after(LOOP_TICK_MS, () => {
      const nowMs = clock.now();
      this.#watchesLoop = false;
      this.share.noteLateness(Math.max(0, nowMs - dueMs), nowMs);
      if (!this.#isClosed && nowMs - this.#lastTakenMs < LOOP_WATCH_MS) this.#watchLoop();
      else this.#memory.clear();
    });
  }

  async #readChunk(
    chunk: Chunk,
    into: Buffer,
    at: number,
    length: number,
    position: number,
  ): Promise<void> {
    const isSequential = this.#noteRead(chunk);
    if (this.#memory.get(chunk.name) === undefined) {
      const range = { into, at, length, position };
      if ((await this.#cache?.read(chunk.name, chunk.end - chunk.start, range)) === true) {
        this.reads.cache += 1;
        if (isSequential) this.#fetchAhead(chunk);
        return;
      }
    }
    const held = this.#memory.get(chunk.name) ?? this.#fetch(chunk, () => this.#take(chunk));
    if (held.isDone) this.reads.cache += 1;
    held.users += 1;
    try {
      if (isSequential) this.#fetchAhead(chunk);
      await held.arrived;
      await copyInSlices(held.bytes.subarray(position, position + length), into, at);
    } finally {
      this.#memory.release(chunk.name, held);
    }
  }

  /** True if the reader of the object goes on where the last read was. */
  #noteRead({ object, index }: Chunk): boolean {
    const last = this.#lastRead.get(object);
    this.#lastRead.delete(object);
    this.#lastRead.set(object, index);
    if (this.#lastRead.size > READERS_MAX) {
      const oldest = this.#lastRead.keys().next();
      if (oldest.done !== true) this.#lastRead.delete(oldest.value);
    }
    return last !== undefined && (index === last || index === last + 1);
  }

  #fetchAhead(chunk: Chunk): void {
    for (let ahead = 1; ahead <= CHUNKS_AHEAD; ahead += 1) {
      const next = chunkAt(chunk, chunk.index + ahead);
      if (next.start >= chunk.bytes || this.#isClosed) return;
      const isHere = this.#memory.get(next.name) !== undefined;
      if (isHere || this.#cache?.has(next.name) === true) continue;
      if (!this.#slots.tryTake(chunk.partition)) return;
      this.#fetch(next, () => Promise.resolve());
    }
  }

  async #take({ partition }: Chunk): Promise<void> {
    await this.#slots.take(partition);
  }

  #fetch(chunk: Chunk, takeSlot: () => Promise<void>): HeldChunk {
    const { name } = chunk;
    const held = this.#memory.hold(name, (own) => this.#fetchInSlot(chunk, own, takeSlot));
    const settled = held.arrived.then(
      () => this.#keep(chunk, held),
      () => {
        // The next reader tries again, unless one does already.
        if (this.#memory.get(name) === held) this.#memory.forget(name);
        this.#memory.release(name, held);
      },
    );
    this.#fetches.add(settled);
    void settled.finally(() => this.#fetches.delete(settled));
    return held;
  }

  async #fetchInSlot(chunk: Chunk, held: HeldChunk, takeSlot: () => Promise<void>): Promise<void> {
    await takeSlot();
    try {
      await this.#fetchPatiently(chunk, this.#memory.claim(held, chunk.end - chunk.start));
      this.reads.store += 1;
      // The store is not read faster than the disk takes it.
      if (this.#writes.size >= WRITES_MAX) await Promise.race(this.#writes);
    } finally {
      this.#slots.release(chunk.partition);
    }
  }

  async #keep({ name }: Chunk, held: HeldChunk): Promise<void> {
    const writing = this.#write(name, held.bytes);
    this.#writes.add(writing);
    await writing;
    this.#writes.delete(writing);
    held.isDone = true;
    this.#memory.release(name, held);
  }

  async #write(name: string, bytes: Buffer): Promise<void> {
    if (this.#options.hasRoom()) await this.#cache?.put(name, bytes);
  }

  async #fetchPatiently({ object, start }: Chunk, bytes: Buffer): Promise<void> {
    for (let backoffMs = BACKOFF_MS; ; backoffMs = Math.min(BACKOFF_MS_MAX, backoffMs * 2)) {
      if (this.#isClosed) throw new LogError("closed", "the log is closed");
      const cold = this.#cold;
      if (cold === undefined) {
        throw new LogError("cold-unavailable", "no object store is configured for these records");
      }
      try {
        await cold.store.read(object, start, bytes, this.#pace);
        this.#failingSinceMs = undefined;
        return;
      } catch (error) {
        if (!(error instanceof ColdStoreError)) throw error;
        this.#options.onFailure(error);
        if (error.isMissing) throw missing(object, error);
        const nowMs = this.#options.clock.now();
        this.#failingSinceMs ??= nowMs;
        if (nowMs - this.#failingSinceMs >= PATIENCE_MS) {
          throw new LogError("cold-unavailable", `the object store fails: ${error.message}`, {
            cause: error,
          });
        }
      }
      await this.#pause(backoffMs);
    }
  }

  async #pause(ms: number, signal?: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = (): void => resolve();
    const cancel = this.#options.clock.after(ms, end);
    signal?.addEventListener("abort", end, { once: true });
    await Promise.race([promise, this.#ending.promise]);
    signal?.removeEventListener("abort", end);
    cancel();
  }
}

// Memory that is touched for the first time makes a copy slow.
async function copyInSlices(bytes: Buffer, into: Buffer, at: number): Promise<void> {
  for (let from = 0; from < bytes.length; from += SLICE_BYTES) {
    if (from > 0) await nextTurn();
    bytes.copy(into, at + from, from, from + SLICE_BYTES);
  }
}

function chunkAt({ object, bytes, partition }: ColdFile, index: number): Chunk {
  const start = index * CHUNK_BYTES;
  const end = Math.min(bytes, start + CHUNK_BYTES);
  return { object, bytes, partition, index, start, end, name: chunkName(object, index) };
}

// The code that a missing file has, so that readers treat both alike.
function missing(object: string, cause: Error): Error {
  return Object.assign(new Error(`${object} is missing in the object store`, { cause }), {
    code: "ENOENT",
  });
}
