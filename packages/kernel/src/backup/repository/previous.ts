// The files of the snapshot before, in the order in which the next one asks for them.
import type { FileEntry } from "./format.ts";

/** Entries that are held at once. */
const WINDOW_MAX = 20_000;

/**
 * Finds files of the snapshot before. Snapshots list their files in one order, so the entries are read as they are needed: a
 * file that is not found within the window counts as new, which costs reading it.
 */
export class PreviousFiles {
  readonly #pages: AsyncIterator<FileEntry[]> | undefined;
  readonly #window = new Map<string, FileEntry>();
  #isAtEnd: boolean;

  constructor(pages: AsyncIterable<FileEntry[]> | undefined) {
    this.#pages = pages?.[Symbol.asyncIterator]();
    this.#isAtEnd = pages === undefined;
  }

  /** The entry of a path; `undefined` if there is none. */
  async find(path: string): Promise<FileEntry | undefined> {
    while (!this.#window.has(path) && !this.#isAtEnd && this.#window.size < WINDOW_MAX) {
      const { value, done } = await this.#pages!.next();
      if (done === true) this.#isAtEnd = true;
      else for (const entry of value) this.#window.set(entry.path, entry);
    }
    const found = this.#window.get(path);
    if (found === undefined) return undefined;
    // Those before it were removed.
    for (const passed of this.#window.keys()) {
      this.#window.delete(passed);
      if (passed === path) break;
    }
    return found;
  }
}
