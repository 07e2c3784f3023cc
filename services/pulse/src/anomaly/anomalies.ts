// Looks for unusual rates, sizes and fields in all topics, from what is stored: publishers do not wait for it.
import type { IdSource } from "@platform/kernel/ids";
import type { Clock } from "@platform/kernel/time";
import { type Activity, SAMPLE_MS } from "../activity/activity.ts";
import { readRecords } from "../store/read-records.ts";
import { readJson, type StateTable } from "../store/state.ts";
import type { PendingRecord, Store } from "../store/store.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import { ANOMALY_KINDS, type AnomalyKind } from "./anomaly-log.ts";
import { TopicAnomalies } from "./topic-anomalies.ts";

const STATE_KIND = "anomalies";
/** Messages of a topic that are looked at in a sample, and the stored bytes that are read for them. */
const MESSAGES_MAX = 20;
const READ_BYTES_MAX = 1024 * 1024;
/** Time that reading messages may take of each sample: 1 % of the thread, however many topics there are. */
const SAMPLE_BUDGET_MS = 100;
const SAVE_MS = 600_000;
const STORED_BYTES_MAX = 64 * 1024;
/** Bytes of one entry when all topics are saved. */
const SAVED_BYTES = 1024 * 1024;
const TOPICS_MAX = 10_000;

interface Watched {
  readonly anomalies: TopicAnomalies;
  /** Ends of the partitions up to which messages have been looked at. */
  ends: number[];
  isUnsaved: boolean;
}

/** Options of {@link Anomalies}. */
export interface AnomaliesOptions {
  readonly store: Store;
  readonly state: StateTable;
  readonly topics: Topics;
  readonly activity: Activity;
  readonly clock: Clock;
  readonly idSource: IdSource;
  readonly onError: (error: unknown) => void;
}

/** The anomalies of the topics, the most recently active 10 000 of them. */
export class Anomalies {
  readonly #options: AnomaliesOptions;
  /** The topic that was active least recently first. */
  readonly #watched = new Map<Topic, Watched>();
  #reading: Promise<void> | undefined;
  #isClosed = false;
  #savedMs: number;
  readonly #unwatch: () => void;

  constructor(options: AnomaliesOptions) {
    this.#options = options;
    const { state, topics, activity, clock } = options;
    this.#savedMs = clock.monotonicMs();
    for (const { key, value } of state.take(STATE_KIND)) {
      const topic = topics.findByHexId(String(key[1]));
      if (topic !== undefined) this.#watch(topic, readJson(value));
    }
    topics.watch({ deleted: (topic) => this.#forget(topic) });
    this.#unwatch = activity.watch(() => this.#sample());
  }

  /** Undefined for a topic without a sample. */
  find(topic: Topic): TopicAnomalies | undefined {
    return this.#watched.get(topic)?.anomalies;
  }

  /** Number of anomalies that last, by kind. */
  countActive(): Record<AnomalyKind, number> {
    const counts = Object.fromEntries(ANOMALY_KINDS.map((kind) => [kind, 0]));
    for (const { anomalies } of this.#watched.values()) {
      for (const kind of anomalies.lasting()) counts[kind]!++;
    }
    return counts as Record<AnomalyKind, number>;
  }

  /** Saves what is known. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#unwatch();
    await this.#reading;
    await this.#save();
  }

  #sample(): void {
    const { activity, clock, onError } = this.#options;
    const nowMs = clock.now();
    const active: Topic[] = [];
    for (const [topic, perSecond] of activity.rates()) {
      const watched = this.#watched.get(topic) ?? (perSecond > 0 ? this.#watch(topic) : undefined);
      if (watched === undefined) continue;
      watched.anomalies.observeRate(perSecond, nowMs);
      watched.isUnsaved = true;
      if (perSecond > 0) active.push(topic);
    }
    // A slow disk only makes the looks at messages rarer.
    this.#reading ??= this.#readAndSave(active)
      .catch(onError)
      .finally(() => (this.#reading = undefined));
  }

  async #readAndSave(active: readonly Topic[]): Promise<void> {
    const { clock } = this.#options;
    const started = clock.monotonicMs();
    // Those that were looked at least recently first, so that each has its turn.
    const order = new Map([...this.#watched.keys()].map((topic, index) => [topic, index]));
    for (const topic of active.toSorted((one, other) => order.get(one)! - order.get(other)!)) {
      if (this.#isClosed || clock.monotonicMs() - started > SAMPLE_BUDGET_MS) break;
      await this.#look(topic);
    }
    if (clock.monotonicMs() - this.#savedMs < SAVE_MS) return;
    this.#savedMs = clock.monotonicMs();
    await this.#save();
  }

  async #look(topic: Topic): Promise<void> {
    const watched = this.#watched.get(topic);
    if (watched === undefined) return;
    this.#watched.delete(topic);
    this.#watched.set(topic, watched);
    const payloads: Buffer[] = [];
    for (const partition of topic.stored.partitions) {
      const { index, durableEnd: end, logStart } = partition;
      const left = MESSAGES_MAX - payloads.length;
      const from = Math.max(logStart, watched.ends[index] ?? 0, end - left);
      watched.ends[index] = end;
      if (left === 0 || from >= end) continue;
      for await (const { value } of readRecords(
        this.#options.store,
        partition,
        from,
        end,
        READ_BYTES_MAX,
      )) {
        if (value !== null) payloads.push(value);
      }
    }
    if (payloads.length === 0) return;
    watched.anomalies.observePayloads(payloads.slice(0, MESSAGES_MAX), this.#options.clock.now());
  }

  #watch(topic: Topic, stored?: unknown): Watched {
    const [oldest] = this.#watched.keys();
    if (this.#watched.size >= TOPICS_MAX && oldest !== undefined) this.#forget(oldest);
    const ids = this.#options.idSource;
    const watched: Watched = {
      anomalies: new TopicAnomalies(ids, SAMPLE_MS / 1_000, stored),
      ends: [],
      isUnsaved: false,
    };
    this.#watched.set(topic, watched);
    return watched;
  }

  #forget(topic: Topic): void {
    if (!this.#watched.delete(topic)) return;
    const { store, state } = this.#options;
    // If this write is lost, the next start ignores the entry or begins with it.
    void store.append([state.toPending(keyOf(topic), null)]).catch(() => undefined);
  }

  async #save(): Promise<void> {
    const { store, state } = this.#options;
    let records: PendingRecord[] = [];
    let bytes = 0;
    for (const [topic, watched] of this.#watched) {
      if (!watched.isUnsaved) continue;
      watched.isUnsaved = false;
      const known = watched.anomalies.store();
      let value = Buffer.from(JSON.stringify(known));
      // The usual form takes half an hour to learn again, the list of anomalies is only history.
      if (value.length > STORED_BYTES_MAX) {
        value = Buffer.from(JSON.stringify({ ...known, anomalies: [] }));
      }
      if (value.length > STORED_BYTES_MAX) continue;
      records.push(state.toPending(keyOf(topic), value));
      bytes += value.length;
      if (bytes < SAVED_BYTES) continue;
      await store.append(records);
      records = [];
      bytes = 0;
    }
    await store.append(records);
  }
}

function keyOf({ stored }: Topic): readonly [string, string] {
  return [STATE_KIND, stored.id.toString("hex")];
}
