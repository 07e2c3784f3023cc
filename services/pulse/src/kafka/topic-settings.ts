// Durable topic settings that only Kafka's tools use.
import type { TimeBounds } from "../publish/batch-shaper.ts";
import { readJson, type StateTable } from "../store/state.ts";
import type { Store } from "../store/store.ts";
import type { Topic, Topics } from "../topic/topics.ts";

/** Changes by Kafka names; null resets to the default. */
export type ExtraChanges = Readonly<Record<string, string | null>>;

/** Limits of all topics, in bytes. */
export interface SizeLimits {
  /** Largest message: the default of `max.message.bytes`, and its largest value. */
  messageBytesMax: number;
  /** Largest record batch, as received. */
  batchBytesMax: number;
}

/** The settings by topic. Errors are those of the log. */
export class TopicSettings {
  readonly limits: SizeLimits;
  readonly #store: Store;
  readonly #state: StateTable;
  readonly #byTopic = new Map<string, ReadonlyMap<string, string>>();

  constructor(store: Store, state: StateTable, topics: Topics, limits: SizeLimits) {
    this.#store = store;
    this.#state = state;
    this.limits = limits;
    for (const { key, value } of state.take("kafka-config")) {
      const id = String(key[1]);
      if (topics.findByHexId(id) === undefined) continue;
      this.#byTopic.set(id, new Map(Object.entries(readJson(value) as Record<string, string>)));
    }
    // If this write is lost, the next start ignores the entry.
    topics.watch({ deleted: (topic) => void this.#write(topic, new Map()).catch(() => undefined) });
  }

  /** The stored settings of a topic. */
  of(topic: Topic): ReadonlyMap<string, string> {
    return this.#byTopic.get(idOf(topic)) ?? new Map<string, string>();
  }

  /** Largest accepted batch of a topic, as received (`max.message.bytes`). */
  batchBytesMaxOf(topic: Topic): number {
    const { batchBytesMax } = this.limits;
    // A value of before a lower limit may be above it.
    return Math.min(this.#read(topic, "max.message.bytes") ?? batchBytesMax, batchBytesMax);
  }

  /** Bounds of the timestamps of records; undefined without bounds. The older name applies where a newer one is not set. */
  timesOf(topic: Topic): TimeBounds | undefined {
    const differenceMs = this.#read(topic, "message.timestamp.difference.max.ms");
    const beforeMs = this.#read(topic, "message.timestamp.before.max.ms") ?? differenceMs;
    const afterMs = this.#read(topic, "message.timestamp.after.max.ms") ?? differenceMs;
    if (beforeMs === undefined && afterMs === undefined) return undefined;
    return { beforeMs: beforeMs ?? Infinity, afterMs: afterMs ?? Infinity };
  }

  #read(topic: Topic, name: string): number | undefined {
    if (this.#byTopic.size === 0) return undefined;
    const text = this.#byTopic.get(idOf(topic))?.get(name);
    return text === undefined ? undefined : Number(text);
  }

  /** Changes the given settings durably. */
  async change(topic: Topic, changes: ExtraChanges): Promise<void> {
    const after = new Map(this.of(topic));
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) after.delete(name);
      else after.set(name, value);
    }
    await this.#write(topic, after);
  }

  async #write(topic: Topic, after: ReadonlyMap<string, string>): Promise<void> {
    const id = idOf(topic);
    if (after.size === 0 && !this.#byTopic.has(id)) return;
    const key = ["kafka-config", id] as const;
    const pending =
      after.size === 0
        ? this.#state.toPending(key, null)
        : this.#state.toPendingJson(key, Object.fromEntries(after));
    await this.#store.append([pending]);
    if (after.size === 0) this.#byTopic.delete(id);
    else if (topic.stored.live) this.#byTopic.set(id, after);
  }
}

function idOf({ stored }: Topic): string {
  return stored.id.toString("hex");
}
