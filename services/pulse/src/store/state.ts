// Small durable facts under keys: offsets, cursors, settings. They live in a compacted topic of the broker's own, so
// that a change of a fact and the messages that it belongs to can be one journal entry.
import type { Log, PartitionView } from "@platform/log";
import { decodeBatch, splitBatches } from "@platform/log/batch";
import type { PendingRecord, Store } from "./store.ts";

/** The topic that holds the facts. */
const STATE_TOPIC_NAME = "__state";
/** Unread bytes of the topic after which it is compacted, at least; grows with what is kept. */
const UNCLEAN_BYTES_MIN = 16 * 1024 * 1024;
const READ_BYTES = 1024 * 1024;

/** A key: a word for the kind of fact, then what it is about. */
export type StateKey = readonly [kind: string, ...about: (string | number)[]];

/** A fact as it was found at the start. */
export interface StateEntry {
  key: StateKey;
  value: Buffer;
}

/**
 * Reads all facts once at the start; afterwards it only makes the drafts that change them. Whoever owns a kind keeps it
 * in the shape it needs.
 */
export class StateTable {
  readonly #store: Store;
  readonly #partition: PartitionView;
  readonly #found: Map<string, Buffer>;
  #isCompacting = false;

  private constructor(store: Store, partition: PartitionView, found: Map<string, Buffer>) {
    this.#store = store;
    this.#partition = partition;
    this.#found = found;
  }

  /** Opens the table, reading every fact. */
  static async open(store: Store): Promise<StateTable> {
    const topic = await store.log.createTopic(STATE_TOPIC_NAME, {
      config: { cleanupPolicy: "compact", segmentBytes: 32 * 1024 * 1024, deleteRetentionMs: 0 },
      orGet: true,
    });
    const partition = topic.partitions[0]!;
    return new StateTable(store, partition, await readAll(store.log, partition));
  }

  /** The facts of one kind as found at the start; each kind can be taken once. */
  take(kind: string): StateEntry[] {
    const entries: StateEntry[] = [];
    const prefix = JSON.stringify([kind]).slice(0, -1);
    for (const [text, value] of this.#found) {
      if (!text.startsWith(prefix)) continue;
      entries.push({ key: JSON.parse(text) as StateKey, value });
      this.#found.delete(text);
    }
    return entries;
  }

  /** The draft that sets a fact, or forgets it with null. It counts when it has been appended. */
  toPending(key: StateKey, value: Buffer | null): PendingRecord {
    const timestamp = Date.now();
    const record = { key: Buffer.from(JSON.stringify(key)), value, headers: [], timestamp };
    return { partition: this.#partition, record, mayUseReserve: true };
  }

  /** As `draft`, with a value as JSON. */
  toPendingJson(key: StateKey, value: unknown): PendingRecord {
    return this.toPending(key, Buffer.from(JSON.stringify(value)));
  }

  /** Compacts the topic if enough has come since the last time; called now and then. */
  async compactIfDue(): Promise<void> {
    const { log } = this.#store;
    const unclean = log.uncleanBytes(this.#partition);
    const clean = this.#partition.bytes - unclean;
    if (this.#isCompacting || unclean < Math.max(UNCLEAN_BYTES_MIN, clean)) return;
    this.#isCompacting = true;
    try {
      await log.compact(this.#partition);
    } finally {
      this.#isCompacting = false;
    }
  }
}

/** Reads a fact's JSON value; undefined if it is none. */
export function readJson(value: Buffer): unknown {
  try {
    return JSON.parse(value.toString()) as unknown;
  } catch {
    return undefined;
  }
}

async function readAll(log: Log, partition: PartitionView): Promise<Map<string, Buffer>> {
  const found = new Map<string, Buffer>();
  let offset = partition.logStart;
  while (offset < partition.durableEnd) {
    const { buffers, nextOffset } = await log.read(partition, offset, READ_BYTES);
    for (const batch of buffers.flatMap((buffer) => [...splitBatches(buffer)])) {
      for (const { key, value } of (await decodeBatch(batch)).records) {
        const text = key!.toString();
        // Copied, or a few bytes would keep a whole read alive.
        if (value === null) found.delete(text);
        else found.set(text, Buffer.from(value));
      }
    }
    if (nextOffset <= offset) break;
    offset = nextOffset;
  }
  return found;
}
