// A bounded cache of open files with LRU eviction.

/** Options of {@link OpenFiles}. */
export interface OpenFilesOptions<Handle> {
  /** Opens the file at a path; `use` can override it. */
  open: (path: string) => Promise<Handle>;
  /** Closes a file. Errors are ignored: writers sync their data themselves. */
  close: (file: Handle) => Promise<void>;
  /** Maximum number of open files. Files in use are never closed, so the actual number may exceed it. */
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

/** Opens files on demand and keeps them open. `Handle` is the type that `open` returns. */
export class OpenFiles<Handle> {
  readonly #options: OpenFilesOptions<Handle>;
  // Least recently used first.
  readonly #slots = new Map<string, Slot<Handle>>();

  constructor(options: OpenFilesOptions<Handle>) {
    this.#options = options;
  }

  /** Number of files that are open or being opened, without forgotten ones. */
  get count(): number {
    return this.#slots.size;
  }

  /** Returns the open file, or opens it. Rejects with the error of `open`; the next call tries again. */
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

  /** Removes a path, for example because its file was replaced; the file is closed when it is no longer in use. */
  forget(path: string): void {
    void this.#forget(path);
  }

  /** Closes idle files immediately and others on release. Resolves when the idle files are closed. */
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
