// The segments shared by many small partitions: their live contents, and which of them are emptied.
import { encodeFileHeader, FILE_HEADER_BYTES } from "../frame/frame.ts";
import type { HeaderSource } from "./segment-header.ts";
import { sharedPath, type Extent, type Partition } from "../partition/partition.ts";
import type { Disk, DiskFile } from "../disk/port.ts";

/** Size from which a new shared segment is started. */
const FILE_BYTES = 64 * 1024 * 1024;
/** Bytes that one checkpoint moves at most to empty shared segments that are mostly dead. */
const EVACUATE_BYTES_MAX = 16 * 1024 * 1024;

/** The segment being written; `end` is the position of the next write. */
export interface OpenShared {
  number: number;
  file: DiskFile;
  end: number;
  salt: Buffer;
}

/** The shared segments. Callers report dropped extents; a segment without extents is retired. */
export class SharedSegments {
  readonly #disk: Disk;
  readonly #onRetired: (path: string) => void;
  readonly #source: HeaderSource;
  readonly #files = new Map<number, { bytes: number; live: number; isEvacuated: boolean }>();
  #number: number;
  #open: OpenShared | undefined;

  /** `number` is the highest one ever used; `onRetired` is called with unreferenced files. */
  constructor(disk: Disk, number: number, source: HeaderSource, onRetired: (path: string) => void) {
    this.#disk = disk;
    this.#source = source;
    this.#number = number;
    this.#onRetired = onRetired;
  }

  /** The highest number ever used. */
  get number(): number {
    return this.#number;
  }

  /** Counts an extent. */
  add(extent: Extent): void {
    const file = this.#take(extent.file);
    file.live += extent.length;
    file.bytes = Math.max(file.bytes, extent.position + extent.length);
  }

  /** Counts a dropped extent. */
  drop(extent: Extent): void {
    const file = this.#files.get(extent.file);
    if (file === undefined) return;
    file.live -= extent.length;
    if (file.live <= 0 && extent.file !== this.#open?.number) this.#retire(extent.file);
  }

  /** The open segment if it is unreferenced: it is not retired yet, but a recovery may remove it. */
  emptied(): string[] {
    const number = this.#open?.number;
    if (number === undefined || (this.#files.get(number)?.live ?? 0) > 0) return [];
    return [sharedPath(number)];
  }

  /** The paths of all segments that are not retired. */
  listPaths(): string[] {
    return [...this.#files.keys()].map(sharedPath);
  }

  /** True if the contents of the segment should be moved. */
  isEvacuated(number: number): boolean {
    return this.#files.get(number)?.isEvacuated === true;
  }

  /** Selects segments that are mostly dead, and returns the partitions with extents in them. */
  evacuate(partitions: Iterable<Partition>): Partition[] {
    let budget = EVACUATE_BYTES_MAX;
    const chosen = new Set<number>();
    for (const [number, file] of this.#files) {
      const isMostlyDead = file.live * 2 <= file.bytes;
      if (number === this.#open?.number || file.isEvacuated || !isMostlyDead) continue;
      if (file.live > budget) continue;
      budget -= file.live;
      file.isEvacuated = true;
      chosen.add(number);
    }
    if (chosen.size === 0) return [];
    return [...partitions].filter(({ extents }) =>
      extents.some((extent) => extent.shared && chosen.has(extent.file)),
    );
  }

  /** Returns the segment to write to, a new one if the last is full. Call `advance` after the write. */
  async open(): Promise<OpenShared> {
    if (this.#open !== undefined && this.#open.end < FILE_BYTES) return this.#open;
    const before = this.#open;
    const number = this.#number + 1;
    const file = await this.#disk.open(sharedPath(number), "create");
    const salt = this.#source.salt();
    const generation = this.#source.generation();
    const header = encodeFileHeader({ kind: "shared", number, salt, previousEnd: 0, generation });
    await file.write([header], 0);
    this.#number = number;
    this.#open = { number, file, end: FILE_HEADER_BYTES, salt };
    await this.#disk.syncFolder("shared");
    await before?.file.close();
    if (before !== undefined && this.#files.get(before.number)?.live === 0) {
      this.#retire(before.number);
    }
    return this.#open;
  }

  /** Records that the open segment has been written up to `end`. */
  advance(open: OpenShared, end: number): void {
    open.end = end;
    this.#take(open.number).bytes = end;
  }

  async close(): Promise<void> {
    await this.#open?.file.close();
    this.#open = undefined;
  }

  #take(number: number) {
    let file = this.#files.get(number);
    if (file === undefined) {
      file = { bytes: 0, live: 0, isEvacuated: false };
      this.#files.set(number, file);
    }
    return file;
  }

  #retire(number: number): void {
    this.#files.delete(number);
    this.#onRetired(sharedPath(number));
  }
}
