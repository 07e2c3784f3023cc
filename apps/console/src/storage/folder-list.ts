// The rows of a folder, read page by page: they are only added at the end, so that nothing moves that somebody reads.

/** Rows that are kept; beyond them a prefix must narrow the list. */
export const ROWS_MAX = 100_000;
/** A reload reads at most so many of the rows again that were loaded before. */
const RELOADED_MAX = 20_000;

/** A page of a listing. */
export interface FolderPage<Item> {
  items: Item[];
  prefixes: string[];
  next_cursor: string | null;
}

/** A folder or an object. `id` is its key or prefix. */
export type FolderRow<Item> =
  | { kind: "folder"; id: string }
  | { kind: "object"; id: string; object: Item };

/** State of a list. */
export interface FolderState<Item> {
  rows: readonly FolderRow<Item>[];
  /** True if there are more rows in storage. */
  hasMore: boolean;
  isLoading: boolean;
  /** The error of the last page; undefined if it was loaded. */
  error: unknown;
}

/** Reads a page of a folder. */
type ReadPage<Item> = (
  cursor: string | undefined,
  signal: AbortSignal,
) => Promise<FolderPage<Item>>;

/** The rows of one folder as far as they were loaded. */
export class FolderList<Item extends { key: string }> {
  readonly #read: ReadPage<Item>;
  readonly #onChange: (state: FolderState<Item>) => void;
  #state: FolderState<Item> = { rows: [], hasMore: false, isLoading: true, error: undefined };
  #cursor: string | undefined;
  #current: AbortController | undefined;

  constructor(read: ReadPage<Item>, onChange: (state: FolderState<Item>) => void) {
    this.#read = read;
    this.#onChange = onChange;
  }

  get state(): FolderState<Item> {
    return this.#state;
  }

  /** Loads the next page, if there is one and none is being loaded. */
  async loadMore(): Promise<void> {
    const { rows, hasMore, isLoading, error } = this.#state;
    if (!hasMore || isLoading || error !== undefined || rows.length >= ROWS_MAX) return;
    await this.#load(rows, this.#cursor, rows.length + 1);
  }

  /** Loads the list again, as far as it was loaded: who scrolled down stays there. */
  async reload(): Promise<void> {
    await this.#load([], undefined, Math.min(this.#state.rows.length, RELOADED_MAX));
  }

  /** Ignores pages that are still on their way. */
  stop(): void {
    this.#current?.abort();
    this.#current = undefined;
  }

  // Pages are read until there are `count` rows.
  async #load(
    before: readonly FolderRow<Item>[],
    from: string | undefined,
    count: number,
  ): Promise<void> {
    this.#current?.abort();
    const mine = (this.#current = new AbortController());
    this.#change({ isLoading: true });
    try {
      const rows = [...before];
      let next = from;
      do {
        const page = await this.#read(next, mine.signal);
        if (this.#current !== mine) return;
        next = page.next_cursor ?? undefined;
        for (const prefix of page.prefixes) rows.push({ kind: "folder", id: prefix });
        for (const object of page.items) rows.push({ kind: "object", id: object.key, object });
      } while (next !== undefined && rows.length < count);
      this.#cursor = next;
      this.#change({ rows, hasMore: next !== undefined, isLoading: false, error: undefined });
    } catch (error) {
      if (this.#current === mine) this.#change({ isLoading: false, error });
    }
  }

  #change(change: Partial<FolderState<Item>>): void {
    this.#state = { ...this.#state, ...change };
    this.#onChange(this.#state);
  }
}
