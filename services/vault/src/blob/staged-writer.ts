// Buffers a body between its client and its writer. Writers work on batches: a whole record, a frame of a file, a stripe of
// shards. The memory of a batch is claimed when enough bytes have arrived, and released if the rest arrives slowly and other
// bodies need it.
//
//             ┌──(a large chunk, or more than fits)──► batch in memory ──(full)──► flush, next batch
//   chunks ──►│                                            ▲    │
//             └──► small buffer ──(others need memory)──►  spill file
import type { BlobId, BlobPlace } from "../model/blob.ts";
import { StoreError } from "../model/store-error.ts";
import { SpillFile } from "./spill-file.ts";
import { SMALL_BYTES_MAX, type MemoryHolder, type StagingBudget } from "./staging-budget.ts";

const SMALL_BYTES_MIN = 4 * 1024;

/** The properties of a blob before its first byte. */
export interface NewBlob {
  id: BlobId;
  /** Bytes that will be written. */
  stored: number;
  description: unknown;
  /** The tenant to which the memory of the body is charged. */
  tenant: string;
}

/** Writes the bytes of one blob. */
export interface BlobWriter {
  /** As `Upload.write`. */
  write(chunk: Uint8Array): Promise<void> | undefined;
  /** All bytes were written: makes them durable. */
  seal(summary: unknown): Promise<{ place: BlobPlace; extent: number }>;
  /** Drops the bytes. Has no effect after a failed `seal`; after a successful one, removes the stored body. */
  discard(): Promise<void>;
}

/** Options of a `StagedWriter`. */
export interface StagedWriterOptions {
  budget: StagingBudget;
  tenant: string;
  /** The path of the spill file; called only when a spill file is created. */
  spillPath: () => string;
}

/** Collects batches for a writer, which implements the abstract members. */
export abstract class StagedWriter implements MemoryHolder {
  readonly tenant: string;
  heldBytes = 0;
  progressBytes = 0;
  readonly #budget: StagingBudget;
  readonly #spill: SpillFile;
  /** Bytes of the batch that have arrived: first those in the spill file, then those in memory. */
  #filled = 0;
  /** Memory claimed for the batch. While it is 0, the bytes in memory are in the small buffer. */
  #batchMemory = 0;
  #small: Buffer | undefined;
  /** True if the body was fast: its next batch then gets memory immediately. */
  #isFast = false;
  /** Work that the next write waits for. */
  #busy: Promise<void> | undefined;
  #spilling: Promise<void> | undefined;
  #isWaiting = false;
  #isCollected = false;
  #isEnded = false;
  #failure: StoreError | undefined;

  constructor({ budget, tenant, spillPath }: StagedWriterOptions) {
    this.#budget = budget;
    this.tenant = tenant;
    this.#spill = new SpillFile(spillPath);
  }

  /** Data bytes that the current batch holds when it is full. */
  protected abstract readonly batchBytes: number;
  /** Memory that a batch needs, in bytes. */
  protected abstract readonly memoryBytes: number;
  /** Allocates the memory of a batch. */
  protected abstract allocate(): void;
  /** Copies bytes into the batch. */
  protected abstract fill(bytes: Uint8Array, at: number): void;
  /** The first `bytes` of the batch as views of its memory. */
  protected abstract view(bytes: number): Uint8Array[];
  /** Drops the memory of the batch. */
  protected abstract drop(): void;
  /** Called when the batch is full. Implementations call `handOver` or `restart`, except for the last batch of the body. */
  protected abstract flush(): Promise<void> | undefined;

  /** As `Upload.write`. */
  write(chunk: Uint8Array): Promise<void> | undefined {
    if (this.#failure !== undefined) throw this.#failure;
    if (chunk.length === 0) return undefined;
    if (this.#busy !== undefined) return this.#writeLater(this.#busy, chunk, 0);
    this.progressBytes += chunk.length;
    let at = 0;
    for (;;) {
      const end = Math.min(chunk.length, at + this.batchBytes - this.#filled);
      const waiting = this.#add(end - at === chunk.length ? chunk : chunk.subarray(at, end));
      if (waiting !== undefined) {
        return end === chunk.length ? waiting : this.#writeLater(waiting, chunk, end);
      }
      if (end === chunk.length) return undefined;
      at = end;
    }
  }

  /** See `MemoryHolder`. */
  yieldMemory(): boolean {
    const canYield = this.#spilling === undefined && (this.#busy === undefined || this.#isWaiting);
    if (!canYield || this.#isCollected || this.#isEnded || this.#failure !== undefined)
      return false;
    if (this.#batchMemory === 0 && this.#small === undefined) return false;
    this.#isFast = false;
    this.#spilling = this.#spillOut();
    if (!this.#isWaiting) void this.#setBusy(this.#spilling);
    return true;
  }

  /** Bytes of the last batch, all in memory when this resolves. Called once, when the body is complete. */
  protected async collectLast(): Promise<number> {
    while (this.#busy !== undefined) await this.#busy;
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#filled > 0 && this.#batchMemory === 0) await this.#load();
    this.#isCollected = true;
    return this.#filled;
  }

  /** The batch is being written: its memory goes with it, and `release` returns it. */
  protected handOver(): () => void {
    const bytes = this.#batchMemory;
    this.#batchMemory = 0;
    this.#filled = 0;
    this.#isFast = true;
    return () => this.#budget.give(this, bytes);
  }

  /** The batch is complete: the next one reuses its memory, unless others wait for it. */
  protected restart(): void {
    this.#filled = 0;
    this.#isFast = true;
    if (this.#budget.isWanted(this.#batchMemory)) this.#giveBatch();
  }

  /** Releases everything. Idempotent. */
  protected async end(): Promise<void> {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#budget.forget(this);
    while (this.#busy !== undefined) await this.#busy.catch(() => undefined);
    if (this.#spilling !== undefined) await this.#spilling;
    this.#giveBatch();
    this.#giveSmall();
    if (this.#spill.bytes > 0) await this.#spill.remove();
  }

  #add(part: Uint8Array): Promise<void> | undefined {
    const complete = this.#filled + part.length === this.batchBytes;
    if (this.#batchMemory === 0 && this.#filled === 0) {
      const isLarge = complete || this.#isFast || part.length >= SMALL_BYTES_MAX;
      if (isLarge && this.#budget.tryTake(this, this.memoryBytes)) this.#beginBatch();
    }
    if (this.#batchMemory === 0) return this.#addSmall(part, complete);
    this.fill(part, this.#filled);
    this.#filled += part.length;
    return complete ? this.#complete() : undefined;
  }

  #complete(): Promise<void> | undefined {
    const flushing = this.flush();
    if (flushing !== undefined) void this.#setBusy(flushing);
    return flushing;
  }

  #addSmall(part: Uint8Array, complete: boolean): Promise<void> | undefined {
    const used = this.#filled - this.#spill.bytes;
    const capacity = this.#small?.length ?? 0;
    if (complete || used + part.length > SMALL_BYTES_MAX) {
      if (this.#spill.bytes === 0 && this.#budget.tryTake(this, this.memoryBytes)) {
        this.#beginBatch();
        for (const bytes of this.#viewSmall()) this.fill(bytes, 0);
        this.#giveSmall();
        return this.#add(part);
      }
      const kept = Buffer.from(part);
      return this.#setBusy(this.#grow(kept, complete));
    }
    if (used + part.length > capacity) {
      const wanted = chooseCapacity(used + part.length);
      const waiting = this.#budget.take(this, wanted - capacity);
      if (waiting !== undefined) return this.#setBusy(this.#widenLater(waiting, wanted, part));
      this.#widen(wanted);
    }
    this.#small!.set(part, used);
    this.#filled += part.length;
    return undefined;
  }

  // For bytes that do not fit in the small buffer: copies them into the memory of a batch, or appends them to the spill file
  // if the body was slow before.
  async #grow(part: Buffer, complete: boolean): Promise<void> {
    if (this.#spill.bytes === 0 || complete) {
      await this.#load();
      if (this.#isEnded) return;
      this.fill(part, this.#filled);
      this.#filled += part.length;
      if (complete) await this.flush();
      return;
    }
    await this.#append([...this.#viewSmall(), part]);
    this.#filled += part.length;
    this.#giveSmall();
  }

  async #widenLater(waiting: Promise<boolean>, wanted: number, part: Uint8Array): Promise<void> {
    const kept = Buffer.from(part);
    const before = this.#small?.length ?? 0;
    const granted = await this.#wait(waiting);
    if (!granted) return;
    // The bytes in memory may have moved to the spill file meanwhile.
    const now = this.#small?.length ?? 0;
    if (now < before) this.#budget.give(this, wanted - before);
    if (now < before || this.#isEnded) {
      if (now === before) this.#budget.give(this, wanted - before);
      if (this.#isEnded) return;
      await this.#append([kept]);
    } else {
      this.#widen(wanted);
      this.#small!.set(kept, this.#filled - this.#spill.bytes);
    }
    this.#filled += kept.length;
  }

  #widen(capacity: number): void {
    const wide = Buffer.allocUnsafeSlow(capacity);
    for (const bytes of this.#viewSmall()) wide.set(bytes);
    this.#small = wide;
  }

  // Claims the memory of the batch and copies the bytes received so far into it.
  async #load(): Promise<void> {
    const waiting = this.#budget.take(this, this.memoryBytes);
    if (waiting !== undefined && !(await this.#wait(waiting))) return;
    this.#beginBatch();
    const before = this.#spill.bytes;
    if (before > 0) await this.#readSpill();
    for (const bytes of this.#viewSmall()) this.fill(bytes, before);
    this.#giveSmall();
    if (before > 0) await this.#spill.remove();
  }

  async #readSpill(): Promise<void> {
    try {
      await this.#spill.read((piece, at) => this.fill(piece, at));
    } catch (error) {
      throw this.#fail(error);
    }
  }

  // While a body waits, its own memory may be requested as well.
  async #wait(waiting: Promise<boolean>): Promise<boolean> {
    this.#isWaiting = true;
    const granted = await waiting;
    this.#isWaiting = false;
    await this.#spilling;
    return granted;
  }

  async #spillOut(): Promise<void> {
    const inBatch = this.#batchMemory > 0;
    const buffers = inBatch ? this.view(this.#filled) : this.#viewSmall();
    try {
      await this.#append(buffers);
    } catch {
      // The next write throws the error.
      return;
    } finally {
      this.#spilling = undefined;
    }
    if (inBatch) this.#giveBatch();
    else this.#giveSmall();
  }

  async #append(buffers: readonly Uint8Array[]): Promise<void> {
    if (buffers.every(({ length }) => length === 0)) return;
    try {
      await this.#spill.append(buffers);
    } catch (error) {
      throw this.#fail(error);
    }
  }

  #fail(error: unknown): StoreError {
    this.#failure ??= translateDiskError(error);
    return this.#failure;
  }

  #beginBatch(): void {
    this.#batchMemory = this.memoryBytes;
    this.allocate();
  }

  #giveBatch(): void {
    if (this.#batchMemory === 0) return;
    this.drop();
    this.#budget.give(this, this.#batchMemory);
    this.#batchMemory = 0;
  }

  #viewSmall(): Buffer[] {
    const used = this.#filled - this.#spill.bytes;
    return this.#small === undefined ? [] : [this.#small.subarray(0, used)];
  }

  #giveSmall(): void {
    const bytes = this.#small?.length ?? 0;
    this.#small = undefined;
    if (bytes > 0) this.#budget.give(this, bytes);
  }

  #setBusy(work: Promise<void>): Promise<void> {
    const busy = work.finally(() => {
      if (this.#busy === busy) this.#busy = undefined;
    });
    // A waiting write receives the error.
    busy.catch(() => undefined);
    this.#busy = busy;
    return busy;
  }

  async #writeLater(waiting: Promise<void>, chunk: Uint8Array, from: number): Promise<void> {
    const rest = Buffer.from(chunk.subarray(from));
    await waiting;
    if (!this.#isEnded) await this.write(rest);
  }
}

function chooseCapacity(bytes: number): number {
  let capacity = SMALL_BYTES_MIN;
  while (capacity < bytes) capacity *= 2;
  return capacity;
}

/** Converts a disk error to a `StoreError`. */
export function translateDiskError(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  const code = (error as NodeJS.ErrnoException).code;
  if (code === "ENOSPC" || code === "EDQUOT") {
    return new StoreError("InsufficientStorage", "There is not enough space left to store this");
  }
  return new StoreError("InternalError", `The disk cannot be written (${code ?? "unknown"})`);
}
