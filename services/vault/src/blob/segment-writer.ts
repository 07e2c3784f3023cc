// Appends records to the open segment: what waits is written together and shares one sync.
import {
  closeFile,
  openFile,
  syncData,
  writeAll,
  type FolderSync,
  type StoreFolders,
} from "./disk.ts";
import { encodeSegmentHead, SEGMENT_HEAD_BYTES } from "./layout.ts";

interface Waiter {
  buffers: Uint8Array[];
  bytes: number;
  resolve: (at: SegmentPosition) => void;
  reject: (error: unknown) => void;
}

/** Where a record begins. */
export interface SegmentPosition {
  segment: number;
  position: number;
}

const GROUP_BYTES_MAX = 16 * 1024 * 1024;

/** Writes segments. Every start of the store begins a new one; a full one is never touched again. */
export class SegmentWriter {
  readonly #folders: StoreFolders;
  readonly #folderSync: FolderSync;
  readonly #bytesMax: number;
  #nextId: number;
  #open: { id: number; fd: number; end: number; isNew: boolean } | undefined;
  #waiting: Waiter[] = [];
  #running: Promise<void> | undefined;
  #stopped: Error | undefined;
  // Records by segment that were appended and whose commit is not settled yet.
  readonly #pins = new Map<number, number>();

  /** `firstId` must be above all segments that there ever were. */
  constructor(folders: StoreFolders, folderSync: FolderSync, firstId: number, bytesMax: number) {
    this.#folders = folders;
    this.#folderSync = folderSync;
    this.#nextId = firstId;
    this.#bytesMax = bytesMax;
  }

  /** Why nothing can be written any more, if so. */
  get stopped(): Error | undefined {
    return this.#stopped;
  }

  /** Whether records of the segment may still be on their way into the index: then it is no garbage. */
  isPinned(segment: number): boolean {
    return this.#pins.has(segment) || this.#open?.id === segment;
  }

  /** The commit of a record that was appended is settled. */
  unpin(segment: number): void {
    const left = (this.#pins.get(segment) ?? 0) - 1;
    if (left > 0) this.#pins.set(segment, left);
    else this.#pins.delete(segment);
  }

  /** Appends a record and pins its segment; resolves when it is on the disk. The buffers must stay as they are until then. */
  append(buffers: Uint8Array[]): Promise<SegmentPosition> {
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    const bytes = buffers.reduce((sum, buffer) => sum + buffer.length, 0);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ buffers, bytes, resolve, reject });
      this.#running ??= this.#run().finally(() => {
        this.#running = undefined;
      });
    });
  }

  /** Waits for what is under way and closes the file. */
  async close(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
    if (this.#open !== undefined) await closeFile(this.#open.fd);
    this.#open = undefined;
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
    const open = await this.#openSegment();
    const start = open.end;
    await writeAll(
      open.fd,
      group.flatMap(({ buffers }) => buffers),
      start,
    );
    try {
      await syncData(open.fd);
      if (open.isNew) await this.#folderSync.sync(this.#folders.segments);
    } catch (error) {
      // What a failed sync has left on the disk is unknown, and asking again would hide it.
      this.#stopped = error instanceof Error ? error : new Error(String(error));
      throw error;
    }
    open.isNew = false;
    for (const waiter of group) {
      this.#pins.set(open.id, (this.#pins.get(open.id) ?? 0) + 1);
      waiter.resolve({ segment: open.id, position: open.end });
      open.end += waiter.bytes;
    }
  }

  async #openSegment() {
    if (this.#open !== undefined && this.#open.end < this.#bytesMax) return this.#open;
    const full = this.#open;
    this.#open = undefined;
    if (full !== undefined) await closeFile(full.fd);
    const id = this.#nextId;
    this.#nextId += 1;
    const fd = await openFile(this.#folders.segment(id), "wx");
    try {
      await writeAll(fd, [encodeSegmentHead(id)], 0);
    } catch (error) {
      await closeFile(fd);
      throw error;
    }
    this.#open = { id, fd, end: SEGMENT_HEAD_BYTES, isNew: true };
    return this.#open;
  }
}
