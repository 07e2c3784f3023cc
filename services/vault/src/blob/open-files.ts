// Files open for reading: a bounded set, the least recently used closed first.
import { closeFile, openFile } from "./disk.ts";

/** A file in use; `release` exactly once. */
export interface FileLease {
  fd: number;
  release: () => void;
}

interface Slot {
  path: string;
  opening: Promise<number>;
  users: number;
  forgotten: boolean;
}

/** Opens files on demand. Files in use are not closed, so that there may be more than `filesMax` of them then. */
export class OpenFiles {
  readonly #filesMax: number;
  // In the order of use, oldest first.
  readonly #slots = new Map<string, Slot>();

  constructor(filesMax: number) {
    this.#filesMax = filesMax;
  }

  get count(): number {
    return this.#slots.size;
  }

  /** Opens the file, or takes the open one. */
  async use(path: string): Promise<FileLease> {
    let slot = this.#slots.get(path);
    if (slot === undefined)
      slot = { path, opening: openFile(path, "r"), users: 0, forgotten: false };
    else this.#slots.delete(path);
    this.#slots.set(path, slot);
    slot.users += 1;
    const used = slot;
    try {
      const fd = await used.opening;
      this.#closeIdle();
      return { fd, release: () => this.#release(used) };
    } catch (error) {
      used.users -= 1;
      if (this.#slots.get(path) === used) this.#slots.delete(path);
      throw error;
    }
  }

  /** Closes the file, as soon as its last user is done: it was removed. */
  forget(path: string): void {
    const slot = this.#slots.get(path);
    if (slot === undefined) return;
    this.#slots.delete(path);
    slot.forgotten = true;
    if (slot.users === 0) closeSlot(slot);
  }

  /** Closes what is idle now, and what is in use when it is released. */
  close(): void {
    for (const path of this.#slots.keys()) this.forget(path);
  }

  #release(slot: Slot): void {
    slot.users -= 1;
    if (slot.forgotten && slot.users === 0) closeSlot(slot);
    else this.#closeIdle();
  }

  #closeIdle(): void {
    if (this.#slots.size <= this.#filesMax) return;
    for (const slot of this.#slots.values()) {
      if (slot.users > 0) continue;
      this.#slots.delete(slot.path);
      closeSlot(slot);
      if (this.#slots.size <= this.#filesMax) return;
    }
  }
}

// Only read: a close that fails loses nothing.
function closeSlot(slot: Slot): void {
  slot.opening.then(closeFile).catch(() => undefined);
}
