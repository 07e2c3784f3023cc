// The queue in IndexedDB (https://www.w3.org/TR/IndexedDB-3/).
import { PulseClientError, type Problem } from "../errors.ts";
import { randomId, type QueuedMessage } from "../message.ts";
import type { Outbox, QueueHead, QueueLimits } from "./outbox.ts";

const VERSION = 1;
const OPEN_MS_MAX = 5_000;

interface Totals {
  messages: number;
  bytes: number;
}

interface Lease {
  owner: string;
  untilMs: number;
}

type Unnumbered = Omit<QueuedMessage, "key">;
type StoreName = "outbox" | "rejected" | "cursors" | "meta";
type Stores = Record<StoreName, IDBObjectStore>;

export class IndexedOutbox implements Outbox {
  readonly isDurable = true;
  readonly #name: string;
  #database: IDBDatabase | undefined;
  #opening: Promise<IDBDatabase> | undefined;
  #isClosed = false;

  private constructor(name: string) {
    this.#name = name;
  }

  /** Opens or creates the database. Rejects if the browser has none or forbids it. */
  static async open(name: string): Promise<IndexedOutbox> {
    const outbox = new IndexedOutbox(name);
    await outbox.#open();
    // Some browsers open it and then refuse to write.
    await outbox.#run("readwrite", (stores) => readProducer(stores.meta));
    return outbox;
  }

  async add(message: Unnumbered, limits: QueueLimits): Promise<{ dropped: QueuedMessage[] }> {
    try {
      return await this.#run("readwrite", async (stores) => {
        const totals = await readTotals(stores.meta);
        const dropped: QueuedMessage[] = [];
        while (
          totals.messages >= limits.messagesMax ||
          totals.bytes + message.bytes > limits.bytesMax
        ) {
          const oldest =
            limits.whenFull === "refuse"
              ? undefined
              : ((await takeFirst(stores.rejected)) ?? (await takeFirst(stores.outbox)));
          if (oldest === undefined) throw new PulseClientError("queue_full", "The queue is full.");
          count(totals, oldest, -1);
          dropped.push(oldest);
        }
        stores.outbox.add(message);
        count(totals, message, 1);
        stores.meta.put(totals, "totals");
        return { dropped };
      });
    } catch (error) {
      if ((error as DOMException | undefined)?.name !== "QuotaExceededError") throw error;
      throw new PulseClientError("queue_full", "The browser's storage is full.", { cause: error });
    }
  }

  head(messagesMax: number, bytesMax: number): Promise<QueueHead> {
    return this.#run("readwrite", async ({ outbox, meta }) => {
      const producerId = await readProducer(meta);
      const subject = await done<string | undefined>(meta.get("subject"));
      const first = await done<Unnumbered[]>(outbox.getAll(null, messagesMax));
      const keys = (await done(outbox.getAllKeys(null, messagesMax))) as number[];
      let bytes = 0;
      const messages: QueuedMessage[] = [];
      for (const [index, message] of first.entries()) {
        bytes += message.bytes;
        if (index > 0 && bytes > bytesMax) break;
        messages.push({ ...message, key: keys[index]! });
      }
      return { producerId, subject, messages };
    });
  }

  settle(keys: readonly number[]): Promise<void> {
    return this.#run("readwrite", async (stores) => {
      const totals = await readTotals(stores.meta);
      for (const key of keys) await remove(stores.outbox, key, totals);
      stores.meta.put(totals, "totals");
    });
  }

  reject(key: number, problem: Problem): Promise<void> {
    return this.#run("readwrite", async ({ outbox, rejected }) => {
      const message = await done<Unnumbered | undefined>(outbox.get(key));
      if (message === undefined) return;
      outbox.delete(key);
      rejected.put({ ...message, problem }, key);
    });
  }

  retry(messageId: string | undefined): Promise<number> {
    return this.#run("readwrite", async ({ outbox, rejected }) => {
      const chosen = (await listOf(rejected)).filter(
        ({ message }) => messageId === undefined || message.message_id === messageId,
      );
      for (const { key, problem: _, ...message } of chosen) {
        rejected.delete(key);
        outbox.add({ ...message, queuedAtMs: Date.now() });
      }
      return chosen.length;
    });
  }

  discard(messageId: string): Promise<boolean> {
    return this.#run("readwrite", async ({ outbox, rejected, meta }) => {
      const totals = await readTotals(meta);
      for (const store of [outbox, rejected]) {
        const found = (await listOf(store)).find(({ message }) => message.message_id === messageId);
        if (found === undefined) continue;
        await remove(store, found.key, totals);
        meta.put(totals, "totals");
        return true;
      }
      return false;
    });
  }

  list(): Promise<QueuedMessage[]> {
    return this.#run("readonly", async ({ outbox, rejected }) => [
      ...(await listOf(outbox)),
      ...(await listOf(rejected)),
    ]);
  }

  clear(): Promise<void> {
    return this.#run("readwrite", async (stores) => {
      for (const store of Object.values(stores)) store.clear();
      await readProducer(stores.meta);
    });
  }

  setSubject(subject: string): Promise<void> {
    return this.#run("readwrite", async ({ meta }) => void meta.put(subject, "subject"));
  }

  readCursor(name: string): Promise<string | undefined> {
    return this.#run("readonly", ({ cursors }) => done<string | undefined>(cursors.get(name)));
  }

  writeCursor(name: string, position: string): Promise<void> {
    // A position that is lost is one message that comes again.
    const write = async ({ cursors }: Stores): Promise<void> => void cursors.put(position, name);
    return this.#run("readwrite", write, "relaxed");
  }

  lease(owner: string, nowMs: number, lengthMs: number): Promise<boolean> {
    return this.#run("readwrite", async ({ meta }) => {
      const held = await done<Lease | undefined>(meta.get("lease"));
      const leftMs = held === undefined ? 0 : held.untilMs - nowMs;
      // One that is longer than any was taken before the clock was set back.
      if (held?.owner !== owner && leftMs > 0 && leftMs <= lengthMs) return false;
      meta.put({ owner, untilMs: nowMs + lengthMs } satisfies Lease, "lease");
      return true;
    });
  }

  release(owner: string): Promise<void> {
    return this.#run("readwrite", async ({ meta }) => {
      const held = await done<Lease | undefined>(meta.get("lease"));
      if (held?.owner === owner) meta.delete("lease");
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#database?.close();
    this.#database = undefined;
  }

  /** Runs `work`, which may await requests of these stores only; resolves when the transaction is on disk. */
  async #run<T>(
    mode: IDBTransactionMode,
    work: (stores: Stores) => Promise<T>,
    durability: IDBTransactionDurability = "strict",
  ): Promise<T> {
    if (this.#isClosed) throw new PulseClientError("closed", "The client is closed.");
    const database = this.#database ?? (await this.#open());
    const names: StoreName[] = ["outbox", "rejected", "cursors", "meta"];
    const transaction = database.transaction(names, mode, { durability });
    const ended = new Promise<void>((resolve, reject) => {
      transaction.addEventListener("complete", () => resolve());
      transaction.addEventListener("abort", () =>
        reject(transaction.error ?? new DOMException("aborted", "AbortError")),
      );
    });
    const stores = Object.fromEntries(
      names.map((name) => [name, transaction.objectStore(name)]),
    ) as Stores;
    try {
      const [result] = await Promise.all([work(stores), ended]);
      return result;
    } catch (error) {
      try {
        transaction.abort();
      } catch {
        // It has ended by itself.
      }
      await ended.catch(() => undefined);
      throw error;
    }
  }

  #open(): Promise<IDBDatabase> {
    this.#opening ??= openDatabase(this.#name)
      .then((database) => {
        const forget = (): void => {
          if (this.#database === database) this.#database = undefined;
        };
        // The browser has evicted it: the next operation creates another.
        database.addEventListener("close", forget);
        database.addEventListener("versionchange", () => {
          database.close();
          forget();
        });
        this.#database = database;
        if (this.#isClosed) this.close();
        return database;
      })
      .finally(() => (this.#opening = undefined));
    return this.#opening;
  }
}

function openDatabase(name: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(name, VERSION);
    const timer = setTimeout(
      () =>
        reject(new PulseClientError("storage_failed", "The browser's storage does not answer.")),
      OPEN_MS_MAX,
    );
    request.addEventListener("upgradeneeded", () => {
      request.result.createObjectStore("outbox", { autoIncrement: true });
      for (const store of ["rejected", "cursors", "meta"]) request.result.createObjectStore(store);
    });
    done<IDBDatabase>(request)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer));
  });
}

function done<T>(request: IDBRequest): Promise<T> {
  return new Promise((resolve, reject) => {
    request.addEventListener("success", () => resolve(request.result as T));
    request.addEventListener("error", () => reject(request.error ?? new Error("IndexedDB failed")));
  });
}

async function readProducer(meta: IDBObjectStore): Promise<string> {
  const known = await done<string | undefined>(meta.get("producer"));
  if (known !== undefined) return known;
  const producerId = randomId();
  meta.put(producerId, "producer");
  return producerId;
}

async function readTotals(meta: IDBObjectStore): Promise<Totals> {
  return (await done<Totals | undefined>(meta.get("totals"))) ?? { messages: 0, bytes: 0 };
}

function count(totals: Totals, { bytes }: Pick<QueuedMessage, "bytes">, sign: 1 | -1): void {
  totals.messages += sign;
  totals.bytes += sign * bytes;
}

async function remove(store: IDBObjectStore, key: number, totals: Totals): Promise<void> {
  const message = await done<Unnumbered | undefined>(store.get(key));
  if (message === undefined) return;
  store.delete(key);
  count(totals, message, -1);
}

async function takeFirst(store: IDBObjectStore): Promise<QueuedMessage | undefined> {
  const cursor = await done<IDBCursorWithValue | null>(store.openCursor());
  if (cursor === null) return undefined;
  const taken = { ...(cursor.value as Unnumbered), key: cursor.key as number };
  cursor.delete();
  return taken;
}

async function listOf(store: IDBObjectStore): Promise<QueuedMessage[]> {
  const messages = await done<Unnumbered[]>(store.getAll());
  const keys = await done<number[]>(store.getAllKeys());
  return messages.map((message, index) => ({ ...message, key: keys[index]! }));
}
