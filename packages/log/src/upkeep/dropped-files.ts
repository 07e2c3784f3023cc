// Files that nothing refers to once the next manifest is written. Those that snapshots read stay until their release.
import type { Disk } from "../disk/port.ts";
import type { Segments } from "../segment/segments.ts";

/** Files and folders for one checkpoint to remove. */
export interface DroppedBatch {
  paths: readonly string[];
  /** Files whose contents are in objects: their indexes stay. */
  copies: readonly string[];
  folders: readonly string[];
}

/** The dropped segment files and folders. */
export class DroppedFiles {
  readonly #disk: Disk;
  readonly #segments: Segments;
  #paths: string[] = [];
  #copies: string[] = [];
  #folders: string[] = [];
  /** Files that snapshots read, with the number of their holds. */
  readonly #holds = new Map<string, number>();

  constructor(disk: Disk, segments: Segments) {
    this.#disk = disk;
    this.#segments = segments;
  }

  /** True if a checkpoint would remove files. */
  get hasRemovable(): boolean {
    return [this.#paths, this.#copies].some((list) => list.some((path) => !this.#holds.has(path)));
  }

  get paths(): readonly string[] {
    return [...this.#paths, ...this.#copies];
  }

  add(path: string): void {
    this.#paths.push(path);
  }

  addCopy(path: string): void {
    this.#copies.push(path);
  }

  addFolder(path: string): void {
    this.#folders.push(path);
  }

  /** Everything that was dropped so far, for the next manifest and `remove`. */
  batch(): DroppedBatch {
    return {
      paths: [...this.#paths],
      copies: [...this.#copies],
      folders: [...this.#folders],
    };
  }

  /** Keeps files from being removed until the returned function is called. */
  hold(paths: Iterable<string>): () => void {
    const held = [...paths];
    for (const path of held) this.#holds.set(path, (this.#holds.get(path) ?? 0) + 1);
    return () => {
      for (const path of held) this.#release(path);
    };
  }

  /** Removes a batch that a durable manifest does not refer to, except the held files. */
  async remove({ paths, copies, folders }: DroppedBatch): Promise<void> {
    const isHeld = (path: string) => this.#holds.has(path);
    const held = paths.filter(isHeld);
    const heldCopies = copies.filter(isHeld);
    await this.#segments.remove(paths.filter((path) => !isHeld(path)));
    await this.#segments.removeCopies(copies.filter((path) => !isHeld(path)));
    for (const folder of folders) await this.#disk.removeFolder(folder);
    this.#paths.splice(0, paths.length, ...held);
    this.#copies.splice(0, copies.length, ...heldCopies);
    // Folders with held files are not empty yet.
    if (held.length === 0) this.#folders.splice(0, folders.length);
  }

  #release(path: string): void {
    const left = (this.#holds.get(path) ?? 0) - 1;
    if (left > 0) this.#holds.set(path, left);
    else this.#holds.delete(path);
  }
}
