// Durable topic settings that only Kafka's tools use.
import { readJson, type StateTable } from "../store/state.ts";
import type { Store } from "../store/store.ts";
import type { Topic, Topics } from "../topic/topics.ts";

/** Changes by Kafka names; null resets to the default. */
export type ExtraChanges = Readonly<Record<string, string | null>>;

/** The settings by topic. Errors are those of the log. */
export class TopicSettings {
  /** Largest batch of any topic, and the default of a topic. */
  readonly batchBytesMax: number;
  readonly #store: Store;
  readonly #state: StateTable;
  readonly #byTopic = new Map<string, ReadonlyMap<string, string>>();

  constructor(store: Store, state: StateTable, topics: Topics, batchBytesMax: number) {
    this.#store = store;
    this.#state = state;
    this.batchBytesMax = batchBytesMax;
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
    if (this.#byTopic.size === 0) return this.batchBytesMax;
    const set = this.#byTopic.get(idOf(topic))?.get("max.message.bytes");
    return set === undefined ? this.batchBytesMax : Number(set);
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
