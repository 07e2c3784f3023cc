// A bounded set of open files, the least recently used closed first.
import type { Disk, DiskFile } from "./port.ts";

/** A file in use; `release` must be called exactly once. */
export type Lease = { file: DiskFile; release: () => void };

type Slot = { path: string; opening: Promise<DiskFile>; users: number; forgotten: boolean };

/**
 * Opens files lazily and keeps at most `filesMax` of them open, except that files in use are never
 * closed. Map order is the order of use, oldest first.
 */
export class OpenFiles {
  readonly #disk: Disk;
  readonly #filesMax: number;
  readonly #slots = new Map<string, Slot>();

  constructor(disk: Disk, filesMax: number) {
    this.#disk = disk;
    this.#filesMax = filesMax;
  }

  get count(): number {
    return this.#slots.size;
  }

  /** Opens `path` for reading and writing, or takes the open file. `create` makes it anew. */
  async use(path: string, create = false): Promise<Lease> {
    let slot = this.#slots.get(path);
    if (slot === undefined) {
      slot = {
        path,
        opening: this.#disk.open(path, create ? "create" : "write"),
        users: 0,
        forgotten: false,
      };
    } else {
      this.#slots.delete(path);
    }
    this.#slots.set(path, slot);
    slot.users++;
    const used = slot;
    try {
      const file = await used.opening;
      this.#closeIdle();
      return { file, release: () => this.#release(used) };
    } catch (error) {
      used.users--;
      if (this.#slots.get(path) === used) this.#slots.delete(path);
      throw error;
    }
  }

  /** Takes a path out (its file was replaced or removed); it is closed when its last user is done. */
  forget(path: string): void {
    const slot = this.#slots.get(path);
    if (slot === undefined) return;
    this.#slots.delete(path);
    slot.forgotten = true;
    if (slot.users === 0) closeQuietly(slot);
  }

  /** Closes everything; no file may be in use. */
  async close(): Promise<void> {
    const slots = [...this.#slots.values()];
    this.#slots.clear();
    await Promise.all(slots.map(async (slot) => (await slot.opening).close()));
  }

  #release(slot: Slot): void {
    slot.users--;
    if (slot.forgotten && slot.users === 0) closeQuietly(slot);
    else this.#closeIdle();
  }

  #closeIdle(): void {
    if (this.#slots.size <= this.#filesMax) return;
    for (const slot of this.#slots.values()) {
      if (slot.users > 0) continue;
      this.#slots.delete(slot.path);
      closeQuietly(slot);
      if (this.#slots.size <= this.#filesMax) return;
    }
  }
}

// Everything that had to reach the medium was synced by its writer; a close that fails loses nothing.
function closeQuietly(slot: Slot): void {
  slot.opening.then((file) => file.close()).catch(() => undefined);
}
