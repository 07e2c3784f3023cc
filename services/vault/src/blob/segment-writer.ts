// Appends records to the open segment: waiting records are written together and share one sync.
import type { Drive } from "./drive/drive.ts";
import { isFull, type DriveSet } from "./drive/drive-set.ts";
import { StoreError } from "../model/store-error.ts";
import { closeFile, openFile, syncData, writeAll } from "../disk/files.ts";
import { encodeSegmentHead, SEGMENT_HEAD_BYTES } from "./layout.ts";

interface Waiter {
  buffers: Uint8Array[];
  bytes: number;
  resolve: (at: SegmentPosition) => void;
  reject: (error: unknown) => void;
}

/** The location of a record. */
export interface SegmentPosition {
  segment: number;
  position: number;
}

interface OpenSegment {
  id: number;
  copies: { drive: Drive; fd: number }[];
  end: number;
  isNew: boolean;
}

const GROUP_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Writes segments. Every start of the store begins a new one; full segments are never changed. With several drives a
 * segment is written to parity + 1 of them; if one of them fails, waiting records go to a new segment on the others.
 */
export class SegmentWriter {
  readonly #drives: DriveSet;
  readonly #bytesMax: number;
  #nextId: number;
  #open: OpenSegment | undefined;
  #mustRoll = false;
  #waiting: Waiter[] = [];
  #running: Promise<void> | undefined;
  #stopped: Error | undefined;
  // Appended records without a settled commit, by segment.
  readonly #pins = new Map<number, number>();

  /** `firstId` must be above the ids of all existing segments. */
  constructor(drives: DriveSet, firstId: number, bytesMax: number) {
    this.#drives = drives;
    this.#nextId = firstId;
    this.#bytesMax = bytesMax;
  }

  /** Closes the open segment: the next record goes to a new one. */
  roll(): void {
    this.#mustRoll = true;
    this.#start();
  }

  /** The reason why writing has stopped; `undefined` while it has not. */
  get stopped(): Error | undefined {
    return this.#stopped;
  }

  /** True if the commit of a record of the segment may be pending: then the segment is not garbage. */
  isPinned(segment: number): boolean {
    return this.#pins.has(segment) || this.#open?.id === segment;
  }

  /** True while a segment is open for records. */
  get hasOpen(): boolean {
    return this.#open !== undefined;
  }

  /** The commit of an appended record is settled. */
  unpin(segment: number): void {
    const left = (this.#pins.get(segment) ?? 0) - 1;
    if (left > 0) this.#pins.set(segment, left);
    else this.#pins.delete(segment);
  }

  /** Appends a record and pins its segment. Resolves when it is on disk; the buffers must not change until then. */
  append(buffers: Uint8Array[]): Promise<SegmentPosition> {
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    const bytes = buffers.reduce((sum, buffer) => sum + buffer.length, 0);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ buffers, bytes, resolve, reject });
      this.#start();
    });
  }

  /** Waits for running writes and closes the file. */
  async close(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
    await this.#closeOpen();
  }

  #start(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#takeGroup();
      try {
        await this.#write(group);
      } catch (error) {
        for (const waiter of group) waiter.reject(error);
      }
    }
    if (!this.#mustRoll) return;
    await this.#closeOpen();
    // Continues with records that arrived during the write.
    if (this.#waiting.length > 0) await this.#run();
  }

  // Acknowledged records are synced, so a failing close loses nothing.
  async #closeOpen(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    this.#mustRoll = false;
    for (const { fd } of open?.copies ?? []) await closeFile(fd).catch(() => undefined);
  }

  #takeGroup(): Waiter[] {
    let bytes = 0;
    let count = 0;
    for (const waiter of this.#waiting) {
      bytes += waiter.bytes;
      if (count > 0 && bytes > GROUP_BYTES_MAX) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  async #write(group: Waiter[]): Promise<void> {
    const buffers = group.flatMap((waiter) => waiter.buffers);
    for (;;) {
      const open = await this.#openSegment();
      const results = await Promise.allSettled(
        open.copies.map((copy) => this.#writeCopy(open, copy, buffers)),
      );
      const failed = results.flatMap((result, index) =>
        result.status === "rejected"
          ? [{ copy: open.copies[index]!, reason: result.reason as unknown }]
          : [],
      );
      if (failed.length === 0) {
        this.#settle(open, group);
        return;
      }
      // No record may follow a torn one on any drive.
      if (this.#drives.isErasureCoded) this.#mustRoll = true;
      const full = failed.find(({ reason }) => isFull(reason));
      if (full !== undefined || !this.#drives.isErasureCoded) throw (full ?? failed[0]!).reason;
      for (const { copy, reason } of failed) {
        this.#drives.fail(copy.drive, reason instanceof Error ? reason.message : String(reason));
      }
    }
  }

  async #writeCopy(
    open: OpenSegment,
    { drive, fd }: OpenSegment["copies"][number],
    buffers: readonly Uint8Array[],
  ): Promise<void> {
    if (!drive.isPresent) throw new Error(drive.absence);
    await writeAll(fd, buffers, open.end);
    try {
      await syncData(fd);
      if (open.isNew) await drive.folderSync.sync(drive.folders.segments);
    } catch (error) {
      // A failed sync leaves an unknown state, and a retry would hide it.
      if (!this.#drives.isErasureCoded) {
        this.#stopped = error instanceof Error ? error : new Error(String(error));
      }
      throw error;
    }
  }

  #settle(open: OpenSegment, group: readonly Waiter[]): void {
    open.isNew = false;
    for (const waiter of group) {
      this.#pins.set(open.id, (this.#pins.get(open.id) ?? 0) + 1);
      waiter.resolve({ segment: open.id, position: open.end });
      open.end += waiter.bytes;
    }
  }

  async #openSegment(): Promise<OpenSegment> {
    const current = this.#open;
    if (current !== undefined && current.end < this.#bytesMax && !this.#mustRoll) return current;
    await this.#closeOpen();
    for (;;) {
      const id = this.#nextId;
      this.#nextId += 1;
      const wanted = this.#drives.parity + 1;
      const drives = this.#drives
        .rank(id)
        .filter((drive) => drive.isPresent)
        .slice(0, wanted);
      if (drives.length < wanted) {
        throw new StoreError("ServiceUnavailable", "Too few drives are present to store this");
      }
      const copies = await this.#create(id, drives);
      if (copies === undefined) continue;
      this.#open = { id, copies, end: SEGMENT_HEAD_BYTES, isNew: true };
      return this.#open;
    }
  }

  // `undefined` if a drive has failed meanwhile: then other drives are chosen.
  async #create(id: number, drives: readonly Drive[]): Promise<OpenSegment["copies"] | undefined> {
    const copies: OpenSegment["copies"] = [];
    for (const drive of drives) {
      try {
        const fd = await openFile(drive.folders.segment(id), "wx");
        copies.push({ drive, fd });
        await writeAll(fd, [encodeSegmentHead(id)], 0);
      } catch (error) {
        for (const { fd } of copies) await closeFile(fd).catch(() => undefined);
        if (isFull(error) || !this.#drives.isErasureCoded) throw error;
        this.#drives.fail(drive, error instanceof Error ? error.message : String(error));
        return undefined;
      }
    }
    return copies;
  }
}
