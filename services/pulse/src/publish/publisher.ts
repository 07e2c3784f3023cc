// Publishes single messages: limits, deduplication, schema, transform, delay, then one atomic entry.
import { PlatformError } from "@platform/kernel/errors";
import type { RateLimit } from "@platform/kernel/http";
import type { IdSource } from "@platform/kernel/ids";
import type { Clock } from "@platform/kernel/time";
import { sizeOfRecord } from "@platform/log/batch";
import type { DeadLetterWriter } from "../deadletter/dead-letter-writer.ts";
import type { Delays, PendingDelay } from "../dispatch/delays.ts";
import type { Expiry, ExpiringEntry } from "../dispatch/expiry.ts";
import type { Backlog } from "../dispatch/backlog.ts";
import type { Schemas } from "../schema/schemas.ts";
import { sizeOf, type PendingRecord, type Store } from "../store/store.ts";
import { checkTopicName, type Tenant } from "../topic/name.ts";
import type { TenantCounts } from "../tenant/tenant-counts.ts";
import { isCompacted, type Topic, type Topics } from "../topic/topics.ts";
import type { Transforms } from "../transform/transforms.ts";
import { Claims } from "./claims.ts";
import type { MessageIds } from "./message-ids.ts";
import { within, withinAsync, withIndex, withoutIndex } from "./message-index.ts";
import { toPublishError } from "./publish-error.ts";
import { toRecord, type MessageFacts } from "../message/message.ts";
import { Partitioner } from "./partitioner.ts";
import type { PublishInput, PublishOutcome } from "./publish-input.ts";
import type { Sequences } from "./sequences.ts";
import {
  waitForEarlier,
  type Accepted,
  type Claimed,
  type Duplicate,
  type Placed,
  type Scheduled,
  type Shaped,
} from "./steps.ts";

/** Options of `publish`. */
export interface PublishOptions {
  /** Counts against the tenant's rate. */
  isRated: boolean;
  /** A requeue of a dead letter: no rate limit, no backpressure, no deduplication. */
  isRequeue?: boolean;
  /** Further records of the same atomic entry. */
  also?: readonly PendingRecord[];
  /** A further record, which depends on those of earlier entries. */
  ordered?: OrderedRecord;
}

/** A record whose entries take turns: it is made when the entry is appended, and the next one when that has ended. */
interface OrderedRecord {
  begin: () => Promise<PendingRecord>;
  end: (isStored: boolean) => void;
}

/** Counts for metrics. */
export interface PublishCounts {
  published: number;
  deadLettered: number;
  duplicates: number;
}

interface PublisherOptions {
  store: Store;
  topics: Topics;
  rate: RateLimit;
  ids: MessageIds;
  sequences: Sequences;
  schemas: Schemas;
  transforms: Transforms;
  backlog: Backlog;
  delays: Delays;
  expiry: Expiry;
  deadLetters: DeadLetterWriter;
  idSource: IdSource;
  clock: Clock;
  tenantCounts: TenantCounts;
  /** Maximum size of a message: payload, key and headers. */
  messageBytesMax: number;
}

/** Held by a call until its entry is stored or has failed. */
interface Held {
  claims: Claims[];
  delays: PendingDelay[];
  admitted: Topic[];
  entered: [topic: Topic, count: number][];
}

/** Publishes messages. Errors are PlatformErrors; for several messages they carry the `index` of the failed one. */
export class Publisher {
  readonly #options: PublisherOptions;
  readonly #partitioner = new Partitioner();
  readonly counts: PublishCounts = { published: 0, deadLettered: 0, duplicates: 0 };

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  /**
   * Publishes messages, all or nothing, also over several topics. Resolves with their outcomes once they are durable.
   * Errors: `validation_failed`, `payload_too_large`, `unprocessable` (schema), `too_many_requests`,
   * `ERR_BACKPRESSURE`, `overloaded`, `insufficient_storage`, `unavailable` (the disk).
   */
  async publish(
    tenant: Tenant,
    inputs: readonly PublishInput[],
    options: PublishOptions,
  ): Promise<PublishOutcome[]> {
    for (const { producer } of options.isRequeue === true ? [] : inputs) {
      if (producer !== undefined)
        this.#options.sequences.announce(tenant, producer.id, producer.sequence);
    }
    for (const [index, input] of inputs.entries()) {
      within(inputs, index, () => this.#checkInput(input));
    }
    if (options.isRated) this.#options.rate.take(tenant, inputs.length);
    const held: Held = { claims: [], delays: [], admitted: [], entered: [] };
    try {
      const claimed = await this.#prepare(tenant, inputs, options, held);
      const placed: (Placed | Duplicate)[] = [];
      for (const message of claimed) {
        const made = message.kind === "duplicate" ? message : this.#place(message, held);
        placed.push(made instanceof Promise ? await made : made);
      }
      const fresh = placed.filter((message) => message.kind !== "duplicate");
      const stored = await this.#append(fresh, options);
      held.delays = [];
      const outcomes: PublishOutcome[] = [];
      let next = 0;
      for (const message of placed) {
        outcomes.push(message.kind === "duplicate" ? await this.#repeat(message) : stored[next++]!);
      }
      return outcomes;
    } catch (error) {
      const why = toPublishError(error);
      for (const claims of held.claims) claims.release(why);
      for (const due of held.delays) this.#options.delays.release(due);
      throw why;
    } finally {
      for (const topic of held.admitted) this.#options.backlog.settle(topic);
      for (const [topic, count] of held.entered) this.#options.backlog.settle(topic, count);
    }
  }

  /** Everything before the records of the entry are made. */
  async #prepare(
    tenant: Tenant,
    inputs: readonly PublishInput[],
    { isRequeue = false }: PublishOptions,
    held: Held,
  ): Promise<Claimed[]> {
    const { topics, transforms } = this.#options;
    const accepted: Accepted[] = [];
    for (const [index, input] of inputs.entries()) {
      const topic =
        topics.find(tenant, input.topic) ??
        (await withinAsync(inputs, index, () => topics.ensure(tenant, input.topic)));
      accepted.push(within(inputs, index, () => this.#accept(topic, input)));
    }
    const shaped: Shaped[] = [];
    for (const [index, message] of accepted.entries()) {
      shaped.push(
        transforms.has(message.topic)
          ? await withinAsync(inputs, index, () => this.#transform(message))
          : { ...message, kind: "fit", payload: message.input.payload },
      );
    }
    if (!isRequeue) await this.#enter(shaped, held);
    // Without a pause, so that the claims of all calls have one order and calls never wait for each other. From here to
    // the append only necessary steps are awaited: claims are short.
    const own = new Set<Promise<unknown>>();
    const claimed = shaped.map((message, index): Claimed => {
      const claims = new Claims();
      held.claims.push(claims);
      if (isRequeue) return { ...message, claims };
      return within(inputs, index, () => this.#claim(tenant, message, claims, own));
    });
    await waitForEarlier(claimed, own);
    if (!isRequeue) await this.#admit(claimed, held);
    return claimed;
  }

  #checkInput(input: PublishInput): void {
    checkTopicName(input.topic);
    const { payload: value, key = null, headers = [] } = input;
    const { messageBytesMax } = this.#options;
    if (sizeOfRecord({ key, value, headers }) > messageBytesMax) {
      throw new PlatformError(
        "payload_too_large",
        `A message may have ${messageBytesMax} bytes at most.`,
      );
    }
  }

  #accept(topic: Topic, input: PublishInput): Accepted {
    const { schemas, idSource } = this.#options;
    if (input.key === undefined && isCompacted(topic)) {
      throw new PlatformError(
        "validation_failed",
        "A compacted topic requires messages with keys.",
      );
    }
    schemas.check(topic, input.payload);
    const messageId = input.messageId ?? (input.isWire === true ? "" : idSource.uuid());
    return { input, topic, messageId };
  }

  /** Runs the topic's transform; failed messages become dead letters with their original payload. */
  async #transform(message: Accepted): Promise<Shaped> {
    const { transforms, deadLetters, clock, idSource } = this.#options;
    const { topic, input } = message;
    const { payload } = input;
    const result = await transforms.run(topic, payload);
    if (result.kind === "done") return { ...message, kind: "fit", payload: result.payload };
    const { reason } = result;
    const deadLetterTopic = await deadLetters.ensure(topic);
    const messageId = message.messageId === "" ? idSource.uuid() : message.messageId;
    const pending = deadLetters.toPending(deadLetterTopic, {
      sourceTopic: topic.name,
      id: messageId,
      key: input.key ?? null,
      payload,
      headers: input.headers ?? [],
      priority: input.priority ?? 0,
      retryCount: input.retryCount ?? 0,
      reason,
      at: clock.now(),
    });
    const place = { pending, deadLetterTopic: deadLetterTopic.name, reason };
    return { input, topic, messageId, kind: "dead-lettered", payload, ...place };
  }

  #claim(tenant: Tenant, message: Shaped, claims: Claims, own: Set<Promise<unknown>>): Claimed {
    const { ids, sequences } = this.#options;
    const { messageId, producer } = message.input;
    const { input, topic, payload } = message;
    const repeat = (first: Duplicate["first"]): Duplicate => {
      return { kind: "duplicate", input, topic, messageId: message.messageId, payload, first };
    };
    if (messageId !== undefined) {
      const claim = ids.claim(topic, messageId);
      if (claim.kind === "duplicate") return repeat(claim.first);
      own.add(claim.first);
      claims.add({ ...claim, after: undefined, toPending: () => [claim.pending] });
    }
    if (producer === undefined) return { ...message, claims };
    const claim = sequences.claim(tenant, producer.id, producer.sequence, own);
    if (claim.kind === "duplicate") {
      // A duplicate by sequence number does not use up its message id.
      claims.release(new PlatformError("conflict", "The sequence number was used before."));
      return repeat(claim.stored);
    }
    own.add(claim.stored);
    claims.add(claim);
    return { ...message, claims };
  }

  /** Clients of wire protocols are paced: nothing else of the call is held while they wait. Adds what was admitted. */
  async #enter(all: readonly Shaped[], { entered }: Held): Promise<void> {
    const { backlog } = this.#options;
    if (backlog.depthMax === 0) return;
    const indexes = new Map<Topic, number[]>();
    for (const [index, { kind, topic, input }] of all.entries()) {
      if (kind !== "fit" || input.isWire !== true || !backlog.hasGroups(topic)) continue;
      const own = indexes.get(topic);
      if (own === undefined) indexes.set(topic, [index]);
      else own.push(index);
    }
    // In one order, so that calls never wait for each other's topics.
    const ordered = [...indexes].sort(([one], [other]) => (one.name < other.name ? -1 : 1));
    for (const [topic, own] of ordered) {
      try {
        await backlog.enter(topic, own.length);
      } catch (error) {
        const room = Number(toPublishError(error).fields["index"] ?? 0);
        throw all.length === 1 ? withoutIndex(error) : withIndex(error, own[room] ?? own[0]!);
      }
      entered.push([topic, own.length]);
    }
  }

  async #admit(all: readonly Claimed[], { admitted }: Held): Promise<void> {
    const { backlog } = this.#options;
    for (const [index, { kind, topic, input }] of all.entries()) {
      if (kind !== "fit" || input.isWire === true) continue;
      const opening = backlog.opening(topic);
      if (opening !== undefined) await withinAsync(all, index, () => opening);
      within(all, index, () => backlog.admit(topic));
      admitted.push(topic);
    }
  }

  /** Makes the records of a message; those of a delayed one need a moment. */
  #place(
    message: Exclude<Claimed, Duplicate>,
    { delays: held }: Held,
  ): Placed | Promise<Scheduled> {
    if (message.kind === "dead-lettered") return message;
    const { input, topic, messageId, payload, claims } = message;
    const now = this.#options.clock.now();
    const { delayMs = 0, ttlMs } = input;
    const facts: MessageFacts = {
      id: messageId,
      priority: input.priority ?? 0,
      // Starts when the message can be consumed.
      expiresAt: ttlMs === undefined ? undefined : now + delayMs + ttlMs,
      retryCount: input.retryCount ?? 0,
      mqtt: input.mqtt,
    };
    const key = input.key ?? null;
    const orderKey = key ?? input.orderKey ?? null;
    const partition = this.#partitioner.choose(orderKey, topic.stored.partitions.length);
    const record = toRecord({ key, payload, headers: input.headers ?? [] }, facts, now);
    const common = { input, topic, messageId, payload, claims };
    if (delayMs > 0) {
      return this.#options.delays
        .toPending(topic, partition, record, now + delayMs)
        .then((due): Scheduled => {
          held.push(due);
          return { kind: "scheduled", ...common, due };
        });
    }
    const pending = { partition: topic.stored.partitions[partition]!, record };
    const companion = input.companion?.toPending(payload);
    const { expiresAt } = facts;
    return { kind: "stored", ...common, pending, partition, expiresAt, companion };
  }

  /** Appends the messages as one entry. Resolves with their outcomes, in their order. */
  async #append(
    fresh: readonly Placed[],
    { also = [], ordered }: PublishOptions,
  ): Promise<PublishOutcome[]> {
    if (ordered === undefined) return this.#appendEntry(fresh, also);
    const mark = await ordered.begin();
    let isStored = false;
    try {
      const outcomes = await this.#appendEntry(fresh, [...also, mark]);
      isStored = true;
      return outcomes;
    } finally {
      ordered.end(isStored);
    }
  }

  async #appendEntry(
    fresh: readonly Placed[],
    also: readonly PendingRecord[],
  ): Promise<PublishOutcome[]> {
    const records: PendingRecord[] = [];
    const firsts: number[] = [];
    for (const message of fresh) {
      firsts.push(records.length);
      records.push(...recordsOf(message), ...message.claims.toPending());
    }
    records.push(...also);
    if (records.reduce((sum, { record }) => sum + sizeOf(record), 0) > ENTRY_BYTES_MAX) {
      throw new PlatformError(
        "payload_too_large",
        `Messages of one call may have ${ENTRY_BYTES_MAX} bytes together.`,
      );
    }
    const expiring = fresh.map((message) => {
      if (message.kind !== "stored" || message.expiresAt === undefined) return undefined;
      const entry = this.#options.expiry.begin(message.pending.partition);
      records.push(...entry.pendingRecords);
      return entry;
    });
    const offsets = await this.#options.store.append(records).catch((error: unknown) => {
      for (const entry of expiring) entry?.release();
      throw error;
    });
    return fresh.map((message, index) => {
      const [first, second] = offsets.slice(firsts[index], firsts[index]! + 2);
      return this.#conclude(message, first!, second, expiring[index]);
    });
  }

  /** `first` and `second`: offsets of the first two records of the message. */
  #conclude(
    message: Placed,
    first: number,
    second: number | undefined,
    expiring: ExpiringEntry | undefined,
  ): PublishOutcome {
    const { backlog, delays, tenantCounts } = this.#options;
    const { topic, messageId, payload, claims, input } = message;
    const common = { topic: topic.name, messageId, payload };
    if (message.kind === "dead-lettered") {
      const { kind, deadLetterTopic, reason } = message;
      this.counts.deadLettered++;
      claims.settle(undefined);
      return { kind, ...common, deadLetterTopic, reason };
    }
    this.counts.published++;
    tenantCounts.addPublished(topic.tenant, 1);
    if (message.kind === "scheduled") {
      const { kind, due } = message;
      delays.note(due, first);
      backlog.noteDelayed(topic, 1);
      claims.settle(undefined);
      return { kind, ...common, dueMs: due.dueMs };
    }
    const { kind, partition, expiresAt, companion } = message;
    if (input.isWire !== true) backlog.noteStored(topic, partition, first);
    if (companion !== undefined) input.companion?.settle(second!);
    if (expiresAt !== undefined) expiring?.settle(first, expiresAt);
    claims.settle({ partition, offset: first });
    return { kind, ...common, partition, offset: first };
  }

  async #repeat({ topic, messageId, payload, first }: Duplicate): Promise<PublishOutcome> {
    this.counts.duplicates++;
    const place = (await first) ?? undefined;
    return { kind: "duplicate", topic: topic.name, messageId, payload, first: place };
  }
}

/** The record of the message, and the one that its author wants beside it. */
function recordsOf(message: Placed): PendingRecord[] {
  if (message.kind === "scheduled") return [message.due.pending];
  if (message.kind === "dead-lettered" || message.companion === undefined) return [message.pending];
  return [message.pending, message.companion];
}

/** Maximum total size of the messages of one call: more than a body of 10 MiB, below the batch limit of the log. */
const ENTRY_BYTES_MAX = 14 * 1024 * 1024;
