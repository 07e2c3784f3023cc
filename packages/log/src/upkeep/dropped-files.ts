// Files that nothing refers to once the next manifest is written. Those that snapshots read stay until their release.
import type { Disk } from "../disk/port.ts";
import type { Segments } from "../segment/segments.ts";

/** Files and folders for one checkpoint to remove. */
export interface DroppedBatch {
  paths: readonly string[];
  folders: readonly string[];
}

/** The dropped segment files and folders. */
export class DroppedFiles {
  readonly #disk: Disk;
  readonly #segments: Segments;
  #paths: string[] = [];
  #folders: string[] = [];
  /** Files that snapshots read, with the number of their holds. */
  readonly #holds = new Map<string, number>();

  constructor(disk: Disk, segments: Segments) {
    this.#disk = disk;
    this.#segments = segments;
  }

  /** True if a checkpoint would remove files. */
  get hasRemovable(): boolean {
    return this.#paths.some((path) => !this.#holds.has(path));
  }

  get paths(): readonly string[] {
    return this.#paths;
  }

  add(path: string): void {
    this.#paths.push(path);
  }

  addFolder(path: string): void {
    this.#folders.push(path);
  }

  /** Everything that was dropped so far, for the next manifest and `remove`. */
  batch(): DroppedBatch {
    return { paths: [...this.#paths], folders: [...this.#folders] };
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
  async remove({ paths, folders }: DroppedBatch): Promise<void> {
    const held = paths.filter((path) => this.#holds.has(path));
    const free = paths.filter((path) => !this.#holds.has(path));
    await this.#segments.remove(free);
    for (const folder of folders) await this.#disk.removeFolder(folder);
    this.#paths.splice(0, paths.length, ...held);
    // Folders with held files are not empty yet.
    if (held.length === 0) this.#folders.splice(0, folders.length);
  }

  #release(path: string): void {
    const left = (this.#holds.get(path) ?? 0) - 1;
    if (left > 0) this.#holds.set(path, left);
    else this.#holds.delete(path);
  }
}
