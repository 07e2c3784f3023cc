// Small durable values under keys: offsets, cursors, settings. They are in an internal compacted topic, so that a change
// and the messages it belongs to can be one journal entry.
import type { Log, PartitionView } from "@platform/log";
import { decodeBatch, splitBatches } from "@platform/log/batch";
import type { PendingRecord, Store } from "./store.ts";

/** The topic of the values. */
const STATE_TOPIC_NAME = "__state";
/** Minimum of uncompacted bytes that start a compaction; grows with the live data. */
const UNCLEAN_BYTES_MIN = 16 * 1024 * 1024;
const READ_BYTES = 1024 * 1024;

/** A key: the kind of the value, then its subject. */
export type StateKey = readonly [kind: string, ...about: (string | number)[]];

/** A value as loaded at startup. */
export interface StateEntry {
  key: StateKey;
  value: Buffer;
}

/**
 * Loads all values at startup; afterwards it only builds the records that change them. The owner of a kind keeps the
 * values in its own form.
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

  /** Opens the table and loads every value. */
  static async open(store: Store): Promise<StateTable> {
    const topic = await store.log.createTopic(STATE_TOPIC_NAME, {
      config: { cleanupPolicy: "compact", segmentBytes: 32 * 1024 * 1024, deleteRetentionMs: 0 },
      orGet: true,
    });
    const partition = topic.partitions[0]!;
    return new StateTable(store, partition, await readAll(store.log, partition));
  }

  /** The loaded values of one kind. Each kind can be taken once. */
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

  /** The record that sets a value, or deletes it with null. It takes effect when it is appended. */
  toPending(key: StateKey, value: Buffer | null): PendingRecord {
    const timestamp = Date.now();
    const record = { key: Buffer.from(JSON.stringify(key)), value, headers: [], timestamp };
    return { partition: this.#partition, record, mayUseReserve: true };
  }

  /** Like `toPending`, with a value as JSON. */
  toPendingJson(key: StateKey, value: unknown): PendingRecord {
    return this.toPending(key, Buffer.from(JSON.stringify(value)));
  }

  /** Compacts the topic if enough has been written since the last time. */
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

/** Parses a JSON value; `undefined` if it is invalid. */
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
        // Copied, since a few bytes would otherwise keep the whole read in memory.
        if (value === null) found.delete(text);
        else found.set(text, Buffer.from(value));
      }
    }
    if (nextOffset <= offset) break;
    offset = nextOffset;
  }
  return found;
}
