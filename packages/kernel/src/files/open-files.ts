// A bounded set of open files, the least recently used closed first.

/** How the files of a set are opened and closed, and how many of them stay open. */
export interface OpenFilesOptions<Handle> {
  /** Opens the file at a path, where `use` is not told otherwise. */
  open: (path: string) => Promise<Handle>;
  /**
   * Closes a file. What must be on the medium was synced by who wrote it: a close that fails loses
   * nothing, and nobody is told.
   */
  close: (file: Handle) => Promise<void>;
  /** Files that stay open. Those in use are not closed, so that there may be more while they are. */
  filesMax: number;
}

/** A file in use; `release` must be called exactly once. */
export interface FileLease<Handle> {
  file: Handle;
  release: () => void;
}

interface Slot<Handle> {
  path: string;
  opening: Promise<Handle>;
  users: number;
  forgotten: boolean;
}

/** Opens files on demand and keeps them open for the next user. `Handle` is whatever the opener gives. */
export class OpenFiles<Handle> {
  readonly #options: OpenFilesOptions<Handle>;
  // In the order of use, oldest first.
  readonly #slots = new Map<string, Slot<Handle>>();

  constructor(options: OpenFilesOptions<Handle>) {
    this.#options = options;
  }

  /** Files that are open or being opened, without those that were forgotten. */
  get count(): number {
    return this.#slots.size;
  }

  /** Takes the open file, or opens it. Rejects with the opener's error; the next user tries again. */
  async use(path: string, open = this.#options.open): Promise<FileLease<Handle>> {
    let slot = this.#slots.get(path);
    if (slot === undefined) slot = { path, opening: open(path), users: 0, forgotten: false };
    else this.#slots.delete(path);
    this.#slots.set(path, slot);
    slot.users += 1;
    const used = slot;
    try {
      const file = await used.opening;
      this.#closeIdle();
      return { file, release: () => this.#release(used) };
    } catch (error) {
      used.users -= 1;
      if (this.#slots.get(path) === used) this.#slots.delete(path);
      throw error;
    }
  }

  /** Takes a path out (its file was replaced or removed); it is closed when its last user is done. */
  forget(path: string): void {
    void this.#forget(path);
  }

  /** Closes what is idle, and what is in use when it is released. Resolves when the idle ones are closed. */
  async close(): Promise<void> {
    await Promise.all([...this.#slots.keys()].map((path) => this.#forget(path)));
  }

  async #forget(path: string): Promise<void> {
    const slot = this.#slots.get(path);
    if (slot === undefined) return;
    this.#slots.delete(path);
    slot.forgotten = true;
    if (slot.users === 0) await this.#closeSlot(slot);
  }

  #release(slot: Slot<Handle>): void {
    slot.users -= 1;
    if (slot.forgotten && slot.users === 0) void this.#closeSlot(slot);
    else this.#closeIdle();
  }

  #closeIdle(): void {
    if (this.#slots.size <= this.#options.filesMax) return;
    for (const slot of this.#slots.values()) {
      if (slot.users > 0) continue;
      this.#slots.delete(slot.path);
      void this.#closeSlot(slot);
      if (this.#slots.size <= this.#options.filesMax) return;
    }
  }

  #closeSlot(slot: Slot<Handle>): Promise<void> {
    return slot.opening.then((file) => this.#options.close(file)).catch(() => undefined);
  }
}
