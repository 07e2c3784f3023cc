// Group commit: items that arrive while a transaction runs share the next one.

/** Options of {@link GroupCommit}. */
export interface GroupCommitOptions<Item, Result> {
  /** Writes the items in one transaction; a rejection means that none was written. */
  write: (items: readonly Item[]) => Promise<readonly Result[]>;
  /** Maximum number of items of a transaction. */
  itemsMax: number;
  /** Maximum number of transactions in flight: one is written while another one waits for the disk. */
  transactionsMax: number;
}

interface Waiting<Item, Result> {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

/** Collects items into transactions. The items of a failed transaction are written again one by one. */
export class GroupCommit<Item, Result> {
  readonly #options: GroupCommitOptions<Item, Result>;
  #waiting: Waiting<Item, Result>[] = [];
  #inFlight = 0;
  #isScheduled = false;

  constructor(options: GroupCommitOptions<Item, Result>) {
    this.#options = options;
  }

  /** Number of items that wait for their transaction. */
  get size(): number {
    return this.#waiting.length;
  }

  /** Resolves when the item is durable. */
  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#schedule();
    });
  }

  // After the current turn of the event loop: requests that arrived together are written together.
  #schedule(): void {
    if (this.#isScheduled || this.#inFlight >= this.#options.transactionsMax) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (this.#waiting.length > 0) void this.#flush();
    });
  }

  async #flush(): Promise<void> {
    const group = this.#waiting.splice(0, this.#options.itemsMax);
    this.#inFlight += 1;
    if (this.#waiting.length > 0) this.#schedule();
    try {
      const results = await this.#options.write(group.map(({ item }) => item));
      for (const [index, { resolve }] of group.entries()) resolve(results[index]!);
    } catch (error) {
      if (group.length === 1) group[0]!.reject(error);
      else for (const one of group) await this.#writeAlone(one);
    } finally {
      this.#inFlight -= 1;
      if (this.#waiting.length > 0) this.#schedule();
    }
  }

  async #writeAlone({ item, resolve, reject }: Waiting<Item, Result>): Promise<void> {
    try {
      const [result] = await this.#options.write([item]);
      resolve(result!);
    } catch (error) {
      reject(error);
    }
  }
}
