// Message ids of the last five minutes, durable, to drop duplicates.
import { PlatformError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import type { PartitionView } from "@platform/log";
import { decodeBatch, splitBatches } from "@platform/log/batch";
import type { PendingRecord, Store } from "../store/store.ts";
import type { Topic } from "../topic/topics.ts";

/** Retention of ids. */
const MESSAGE_ID_WINDOW_MS = 5 * 60 * 1000;
const BUCKET_MS = 30_000;
const ID_TOPIC_NAME = "__message-ids";
const READ_BYTES = 1024 * 1024;

/** Position of the first message with an id; `undefined` if it is unknown (after a restart, or if delayed). */
export type FirstPlace = { partition: number; offset: number } | undefined;

/** Result of a claim. `first` rejects if the first message could not be stored: then the id is free again. */
export type IdClaim =
  | {
      kind: "new";
      first: Promise<FirstPlace>;
      pending: PendingRecord;
      settle: (place: FirstPlace) => void;
      release: (why: Error) => void;
    }
  | { kind: "duplicate"; first: Promise<FirstPlace> };

/** Ids, each with the time of its claim. */
type Ids = Map<string, { first: Promise<FirstPlace>; atMs: number }>;

/** The ids of all topics, in buckets of half a minute that are dropped as a whole. */
export class MessageIds {
  readonly #partition: PartitionView;
  readonly #clock: Clock;
  readonly #idsMax: number;
  readonly #buckets: { untilMs: number; ids: Ids }[] = [];
  #count = 0;

  private constructor(partition: PartitionView, clock: Clock, idsMax: number) {
    this.#partition = partition;
    this.#clock = clock;
    this.#idsMax = idsMax;
  }

  /** Loads the ids of the last five minutes. Above `idsMax` ids, publishing with an id is refused. */
  static async open(store: Store, clock: Clock, idsMax: number): Promise<MessageIds> {
    const topic = await store.log.createTopic(ID_TOPIC_NAME, {
      config: { retentionMs: 2 * MESSAGE_ID_WINDOW_MS, segmentBytes: 8 * 1024 * 1024 },
      orGet: true,
    });
    const partition = topic.partitions[0]!;
    const ids = new MessageIds(partition, clock, idsMax);
    await ids.#readBack(store);
    return ids;
  }

  get count(): number {
    return this.#count;
  }

  /** Claims an id of a topic. Append the record in the message's entry. Throws `overloaded` at the bound. */
  claim(topic: Topic, id: string): IdClaim {
    const key = keyOf(topic.stored.id.toString("hex"), id);
    const first = this.#find(key);
    if (first !== undefined) return { kind: "duplicate", first };
    if (this.#count >= this.#idsMax) {
      throw new PlatformError("overloaded", "The limit of remembered message ids is reached.");
    }
    const place = Promise.withResolvers<FirstPlace>();
    // Usually the promise is not awaited.
    place.promise.catch(() => undefined);
    const now = this.#clock.now();
    const bucket = this.#remember(key, place.promise, now);
    const record = { key: Buffer.from(key), value: null, headers: [], timestamp: now };
    return {
      kind: "new",
      first: place.promise,
      pending: { partition: this.#partition, record },
      settle: place.resolve,
      release: (why) => {
        if (bucket.delete(key)) this.#count--;
        place.reject(why);
      },
    };
  }

  #find(key: string): Promise<FirstPlace> | undefined {
    const now = this.#clock.now();
    while (this.#buckets.length > 0 && this.#buckets[0]!.untilMs + MESSAGE_ID_WINDOW_MS <= now) {
      this.#count -= this.#buckets.shift()!.ids.size;
    }
    for (const { ids } of this.#buckets) {
      const known = ids.get(key);
      // A bucket is kept until its last id expires.
      if (known !== undefined && known.atMs + MESSAGE_ID_WINDOW_MS > now) return known.first;
    }
    return undefined;
  }

  #remember(key: string, first: Promise<FirstPlace>, at: number): Ids {
    let bucket = this.#buckets.at(-1);
    if (bucket === undefined || at >= bucket.untilMs) {
      bucket = { untilMs: at + BUCKET_MS, ids: new Map() };
      this.#buckets.push(bucket);
    }
    if (!bucket.ids.has(key)) this.#count++;
    bucket.ids.set(key, { first, atMs: at });
    return bucket.ids;
  }

  async #readBack(store: Store): Promise<void> {
    const since = this.#clock.now() - MESSAGE_ID_WINDOW_MS;
    const start = await store.log.findTimestamp(this.#partition, since);
    const unknown = Promise.resolve(undefined);
    let offset = start?.offset ?? this.#partition.durableEnd;
    while (offset < this.#partition.durableEnd && this.#count < this.#idsMax) {
      const { buffers, nextOffset } = await store.readIntact(this.#partition, offset, READ_BYTES);
      for (const batch of buffers.flatMap((buffer) => [...splitBatches(buffer)])) {
        for (const record of (await decodeBatch(batch)).records) {
          if (record.offset < offset) continue;
          this.#remember(record.key!.toString(), unknown, record.timestamp);
        }
      }
      offset = nextOffset;
    }
  }
}

function keyOf(topicId: string, id: string): string {
  return `${topicId} ${id}`;
}
