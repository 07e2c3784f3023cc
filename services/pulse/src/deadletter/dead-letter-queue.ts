// The dead letters of a topic that were not requeued: list, summary, requeue.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import { toMessage, type Message } from "../message/message.ts";
import { OffsetRanges, type StoredRanges } from "../store/offset-ranges.ts";
import type { RecordHeader } from "@platform/log/batch";
import { readRecords } from "../store/read-records.ts";
import { readJson, type StateTable } from "../store/state.ts";
import type { PendingRecord, Store } from "../store/store.ts";
import type { Tenant } from "../topic/name.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import type { DeadLetterWriter, Envelope } from "./dead-letter-writer.ts";

/** Newest dead letters included in a summary, and their bytes. */
const SUMMARY_MAX = 10_000;
const SUMMARY_BYTES_MAX = 64 * 1024 * 1024;
const SAMPLE_IDS_MAX = 5;
const CLUSTERS_MAX = 100;

/** Dead letters with the same reason, ignoring numbers and ids in it, for the API. Times in epoch seconds. */
export const deadLetterCause = z.object({
  reason: z.string(),
  count: z.int(),
  first_seen: z.number(),
  last_seen: z.number(),
  sample_ids: z.array(z.string()),
});

/** Dead letters of one cause, with the offsets of the newest in their topic, oldest first. */
export type LetterCluster = z.infer<typeof deadLetterCause> & { offsets: number[] };

/** Dead letters counted by their cause. */
export interface LetterCounts {
  dlq_topic: string;
  total: number;
  counted: number;
  /** False if these are only the newest letters, or the most frequent causes. */
  is_complete: boolean;
  clusters: LetterCluster[];
}

interface Letter {
  message: Message;
  envelope: Envelope;
}

/** A dead letter to publish again. */
interface RequeuedMessage {
  topic: string;
  payload: Buffer;
  key: Buffer | undefined;
  headers: readonly RecordHeader[];
  priority: number;
  messageId: string;
  retryCount: number;
}

/** The record that marks a dead letter as done: made when its entry is appended, after those of earlier entries. */
interface DoneMark {
  begin: () => Promise<PendingRecord>;
  end: (isStored: boolean) => void;
}

/** Publishes a message and, in the same entry, the record that marks its dead letter as requeued. */
export type Republish<Outcome> = (
  tenant: Tenant,
  message: RequeuedMessage,
  mark: DoneMark,
) => Promise<Outcome>;

/** The dead letters of all topics. A requeue is recorded in the entry of the message that it publishes. */
export class DeadLetterQueue<Outcome> {
  readonly #store: Store;
  readonly #state: StateTable;
  readonly #topics: Topics;
  readonly #writer: DeadLetterWriter;
  readonly #republish: Republish<Outcome>;
  readonly #requeued = new Map<string, OffsetRanges>();
  readonly #busy = new Set<string>();
  /** The last entry of each dead letter topic that is being appended. */
  readonly #turns = new Map<string, Promise<void>>();

  constructor(options: {
    store: Store;
    state: StateTable;
    topics: Topics;
    writer: DeadLetterWriter;
    republish: Republish<Outcome>;
  }) {
    this.#store = options.store;
    this.#state = options.state;
    this.#topics = options.topics;
    this.#writer = options.writer;
    this.#republish = options.republish;
    for (const { key, value } of options.state.take("requeued")) {
      if (options.topics.findByHexId(String(key[1])) === undefined) continue;
      const stored = readJson(value) as StoredRanges;
      this.#requeued.set(String(key[1]), new OffsetRanges(stored));
    }
    options.topics.watch({ deleted: (topic) => this.#forget(topic) });
  }

  /** Bytes stored in the dead letter topic of a source topic. */
  countBytes(topic: Topic): number {
    const dlq = this.#topics.find(topic.tenant, this.#writer.nameFor(topic));
    return dlq?.stored.partitions[0]!.bytes ?? 0;
  }

  /** The oldest dead letters of a source topic, at most `limit` and about `bytesMax` bytes, and their total number. */
  async list(topic: Topic, limit: number, bytesMax = Number.POSITIVE_INFINITY) {
    const name = this.#writer.nameFor(topic);
    const dlq = this.#topics.find(topic.tenant, name);
    const messages: Envelope[] = [];
    let bytes = 0;
    if (dlq === undefined) return { messages, total: 0, dlq_topic: name };
    for await (const { envelope, message } of this.#read(dlq, topic)) {
      bytes += message.payload.length;
      if (bytes > bytesMax && messages.length > 0) break;
      messages.push(envelope);
      if (messages.length >= limit) break;
    }
    return { messages, total: this.#countLeft(dlq), dlq_topic: name };
  }

  /** Counts the newest dead letters by reason, most frequent first; `is_complete` if these are all. */
  async summarize(topic: Topic, lettersMax = SUMMARY_MAX) {
    const counts = await this.cluster(topic, lettersMax, 0);
    const clusters = counts.clusters.map((counted) => {
      const { offsets: _, ...cluster } = counted;
      return cluster;
    });
    return { ...counts, clusters };
  }

  /** As `summarize`, with the offsets of the newest `offsetsMax` letters of each cause. */
  async cluster(topic: Topic, lettersMax: number, offsetsMax: number): Promise<LetterCounts> {
    const name = this.#writer.nameFor(topic);
    const dlq = this.#topics.find(topic.tenant, name);
    const clusters = new Map<string, LetterCluster>();
    if (dlq === undefined) {
      return { dlq_topic: name, total: 0, counted: 0, is_complete: true, clusters: [] };
    }
    const partition = dlq.stored.partitions[0]!;
    const from = Math.max(0, partition.durableEnd - lettersMax);
    let isComplete = from <= Math.max(this.#doneOf(dlq).low, partition.logStart);
    let counted = 0;
    let bytes = 0;
    for await (const letter of this.#read(dlq, topic, from)) {
      bytes += letter.message.payload.length;
      if (bytes > SUMMARY_BYTES_MAX) {
        isComplete = false;
        break;
      }
      counted++;
      if (!count(clusters, letter, offsetsMax)) isComplete = false;
    }
    const sorted = [...clusters.values()].sort((a, b) => b.count - a.count);
    const total = this.#countLeft(dlq);
    return { dlq_topic: name, total, counted, is_complete: isComplete, clusters: sorted };
  }

  /** The dead letter of a source topic at an offset of its dead letter topic, unless it is done. */
  async at(topic: Topic, offset: number): Promise<Envelope | undefined> {
    const dlq = this.#topics.find(topic.tenant, this.#writer.nameFor(topic));
    if (dlq === undefined) return undefined;
    for await (const { envelope } of this.#read(dlq, topic, offset, offset + 1)) return envelope;
    return undefined;
  }

  /**
   * Publishes a dead letter to its topic again, with another payload if `change` returns one: same id, one more retry, no TTL and
   * no delay. The message and the mark of its dead letter are one entry. Throws `not_found`, `conflict` during another
   * requeue of the same letter, and errors of publishing. `from`: its offset or one before it, if known.
   */
  requeue(
    topic: Topic,
    messageId: string,
    change: (payload: Buffer) => Buffer | undefined,
    from = 0,
  ): Promise<Outcome> {
    return this.#settle(topic, messageId, from, async ({ message, envelope }, mark) => {
      const payload = readPayload(envelope);
      const requeued: RequeuedMessage = {
        topic: envelope.source_topic,
        payload: change(payload) ?? payload,
        key: message.key ?? undefined,
        headers: message.headers,
        priority: message.priority,
        messageId: envelope.message_id,
        retryCount: envelope.retry_count + 1,
      };
      return this.#republish(topic.tenant, requeued, mark);
    });
  }

  // Finds a letter and passes it on with the record that marks it as done. One caller at a time.
  async #settle<Result>(
    topic: Topic,
    messageId: string,
    from: number,
    work: (letter: Letter, mark: DoneMark) => Promise<Result>,
  ): Promise<Result> {
    const name = this.#writer.nameFor(topic);
    const dlq = this.#topics.find(topic.tenant, name);
    const letter = dlq === undefined ? undefined : await this.#find(dlq, topic, messageId, from);
    if (dlq === undefined || letter === undefined) {
      throw new PlatformError("not_found", "The dead letter does not exist.");
    }
    const id = dlq.stored.id.toString("hex");
    const { offset } = letter.message;
    const place = `${id} ${offset}`;
    if (this.#busy.has(place)) {
      throw new PlatformError("conflict", "The dead letter is already being requeued.");
    }
    this.#busy.add(place);
    try {
      // It may have been done since it was found.
      if (this.#doneOf(dlq).has(offset)) {
        throw new PlatformError("not_found", "The dead letter does not exist.");
      }
      return await work(letter, this.#createMark(dlq, offset));
    } finally {
      this.#busy.delete(place);
    }
  }

  /** Marks of a dead letter topic take turns: each has the ranges of all that are stored before it, and of no others. */
  #createMark(dlq: Topic, offset: number): DoneMark {
    const id = dlq.stored.id.toString("hex");
    const turn = Promise.withResolvers<void>();
    return {
      begin: async () => {
        const before = this.#turns.get(id);
        this.#turns.set(id, turn.promise);
        await before;
        const after = new OffsetRanges(this.#doneOf(dlq).toStored());
        after.add(offset);
        return this.#state.toPendingJson(["requeued", id], after.toStored());
      },
      end: (isStored) => {
        if (isStored) this.#doneOf(dlq).add(offset);
        if (this.#turns.get(id) === turn.promise) this.#turns.delete(id);
        turn.resolve();
      },
    };
  }

  /** All dead letters of a source topic after an offset of its dead letter topic, oldest first. */
  async *letters(topic: Topic, after = -1): AsyncGenerator<Envelope & { offset: number }> {
    const dlq = this.#topics.find(topic.tenant, this.#writer.nameFor(topic));
    if (dlq === undefined) return;
    for await (const { envelope, message } of this.#read(dlq, topic, after + 1)) {
      yield { ...envelope, offset: message.offset };
    }
  }

  /** Drops a dead letter, durably: it is neither listed nor requeued any more. Arguments and errors as of `requeue`. */
  async discard(topic: Topic, messageId: string, from = 0): Promise<void> {
    await this.#settle(topic, messageId, from, async (_letter, mark) => {
      const record = await mark.begin();
      let isStored = false;
      try {
        await this.#store.append([record]);
        isStored = true;
      } finally {
        mark.end(isStored);
      }
    });
  }

  /** Number of dead letters of a topic that were not requeued. */
  countOf(topic: Topic): number {
    const dlq = this.#topics.find(topic.tenant, this.#writer.nameFor(topic));
    return dlq === undefined ? 0 : this.#countLeft(dlq);
  }

  async #find(
    dlq: Topic,
    topic: Topic,
    messageId: string,
    from: number,
  ): Promise<Letter | undefined> {
    for await (const letter of this.#read(dlq, topic, from)) {
      if (letter.envelope.message_id === messageId) return letter;
    }
    return undefined;
  }

  async *#read(dlq: Topic, source: Topic, from = 0, until?: number): AsyncGenerator<Letter> {
    const done = this.#doneOf(dlq);
    const partition = dlq.stored.partitions[0]!;
    const start = Math.max(from, done.low, partition.logStart);
    for await (const record of readRecords(this.#store, partition, start, until)) {
      if (done.has(record.offset)) continue;
      const message = toMessage(dlq, 0, record);
      const envelope = readEnvelope(message);
      // Several topics may share one dead letter topic, and clients may publish there as well.
      if (envelope?.source_topic === source.name) yield { message, envelope };
    }
  }

  #doneOf(dlq: Topic): OffsetRanges {
    const id = dlq.stored.id.toString("hex");
    const known = this.#requeued.get(id) ?? new OffsetRanges();
    this.#requeued.set(id, known);
    return known;
  }

  #countLeft(dlq: Topic): number {
    const partition = dlq.stored.partitions[0]!;
    const done = this.#doneOf(dlq);
    done.raise(partition.logStart);
    return done.countLeft(partition.durableEnd);
  }

  #forget(dlq: Topic): void {
    const id = dlq.stored.id.toString("hex");
    if (!this.#requeued.delete(id)) return;
    // If this write is lost, the next start ignores the entry.
    this.#store.append([this.#state.toPending(["requeued", id], null)]).catch(() => undefined);
  }
}

/** Adds a letter to its cluster; false if there are too many. */
function count(
  clusters: Map<string, LetterCluster>,
  { envelope, message }: Letter,
  offsetsMax: number,
): boolean {
  const { failure_reason, timestamp, message_id } = envelope;
  const reason = toCause(failure_reason);
  let cluster = clusters.get(reason);
  if (cluster === undefined) {
    if (clusters.size >= CLUSTERS_MAX) return false;
    const times = { first_seen: timestamp, last_seen: timestamp };
    cluster = { reason, count: 0, ...times, sample_ids: [], offsets: [] };
    clusters.set(reason, cluster);
  }
  cluster.count++;
  cluster.last_seen = timestamp;
  if (cluster.sample_ids.length < SAMPLE_IDS_MAX) cluster.sample_ids.push(message_id);
  cluster.offsets.push(message.offset);
  if (cluster.offsets.length > 2 * offsetsMax)
    cluster.offsets.splice(0, cluster.offsets.length - offsetsMax);
  return true;
}

/** The cause of dead letters: their reason without numbers and ids. */
export function toCause(reason: string): string {
  return reason.replace(/[0-9a-f]{8,}|\d+/gi, "…").slice(0, 200);
}

/** The published payload. */
export function readPayload({ original_payload: text, encoding }: Envelope): Buffer {
  return Buffer.from(text, encoding === "base64" ? "base64" : "utf8");
}

function readEnvelope(message: Message): Envelope | undefined {
  const value = readJson(message.payload) as Partial<Envelope> | null | undefined;
  const isEnvelope =
    typeof value?.message_id === "string" &&
    typeof value.source_topic === "string" &&
    typeof value.original_payload === "string" &&
    typeof value.failure_reason === "string" &&
    Number.isSafeInteger(value.timestamp) &&
    Number.isSafeInteger(value.retry_count);
  return isEnvelope ? (value as Envelope) : undefined;
}
