// Publishes single messages: limits, deduplication, schema, transform, delay, then one atomic entry.
import { PlatformError } from "@platform/kernel/errors";
import type { RateLimit } from "@platform/kernel/http";
import type { IdSource } from "@platform/kernel/ids";
import type { Clock } from "@platform/kernel/time";
import { sizeOfRecord } from "@platform/log/batch";
import type { DeadLetterWriter } from "../deadletter/dead-letter-writer.ts";
import type { Delays } from "../dispatch/delays.ts";
import type { Expiry } from "../dispatch/expiry.ts";
import type { Backlog } from "../dispatch/backlog.ts";
import type { Schemas } from "../schema/schemas.ts";
import { sizeOf, type PendingRecord, type Store } from "../store/store.ts";
import { checkTopicName, type Tenant } from "../topic/name.ts";
import type { TenantCounts } from "../tenant-counts.ts";
import { isCompacted, type Topic, type Topics } from "../topic/topics.ts";
import type { Transforms } from "../transform/transforms.ts";
import type { MessageIds } from "./message-ids.ts";
import { within, withinAsync, withIndex, withoutIndex } from "./message-index.ts";
import { toPublishError } from "./publish-error.ts";
import { toRecord, type MessageFacts } from "../message.ts";
import { waitForEarlier, type Prepared } from "./prepared.ts";
import { Partitioner } from "./partitioner.ts";
import type { PublishInput, PublishOutcome } from "./publish-input.ts";
import type { Sequences } from "./sequences.ts";

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
    const all: Prepared[] = [];
    let admitted: Topic[] = [];
    const entered: [topic: Topic, count: number][] = [];
    try {
      for (const [index, input] of inputs.entries()) {
        await withinAsync(inputs, index, async () => {
          all.push(await this.#begin(tenant, input));
        });
      }
      for (const [index, prepared] of all.entries()) {
        await withinAsync(inputs, index, () => this.#shape(prepared));
      }
      if (options.isRequeue !== true) await this.#enter(all, entered);
      // Without a pause, so that the claims of all calls have one order and calls never wait for each other. From here to
      // the append only necessary steps are awaited: claims are short.
      const own = new Set<Promise<unknown>>();
      for (const [index, prepared] of all.entries()) {
        within(inputs, index, () => this.#claim(tenant, prepared, options, own));
      }
      await waitForEarlier(all, own);
      const fresh = all.filter(({ duplicate }) => duplicate === undefined);
      if (options.isRequeue !== true) admitted = await this.#admit(all);
      for (const prepared of fresh) await this.#preparePending(prepared);
      await this.#append(fresh, options);
      for (const prepared of all) {
        if (prepared.duplicate === undefined) continue;
        this.counts.duplicates++;
        const { topic, messageId, payload } = prepared;
        const first = (await prepared.duplicate) ?? undefined;
        prepared.outcome = { kind: "duplicate", topic: topic.name, messageId, payload, first };
      }
      return all.map(({ outcome }) => outcome!);
    } catch (error) {
      const why = toPublishError(error);
      for (const { claims, due, outcome } of all) {
        for (const claim of claims) claim.release(why);
        if (due !== undefined && outcome === undefined) this.#options.delays.release(due);
      }
      throw why;
    } finally {
      for (const topic of admitted) this.#options.backlog.settle(topic);
      for (const [topic, count] of entered) this.#options.backlog.settle(topic, count);
    }
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

  async #begin(tenant: Tenant, input: PublishInput): Promise<Prepared> {
    const { topics, schemas, idSource } = this.#options;
    const topic = await topics.ensure(tenant, input.topic);
    if (input.key === undefined && isCompacted(topic)) {
      throw new PlatformError(
        "validation_failed",
        "A compacted topic requires messages with keys.",
      );
    }
    schemas.check(topic, input.payload);
    return {
      input,
      topic,
      messageId: input.messageId ?? (input.isWire === true ? "" : idSource.uuid()),
      payload: input.payload,
      claims: [],
      outcome: undefined,
      duplicate: undefined,
      pendingRecords: [],
      place: undefined,
      companion: undefined,
      due: undefined,
      expiring: undefined,
    };
  }

  // Runs the topic's transform; failed messages become dead letters with their original payload.
  async #shape(prepared: Prepared): Promise<void> {
    const { transforms, deadLetters, clock, idSource } = this.#options;
    const { topic, input } = prepared;
    if (!transforms.has(topic)) return;
    const result = await transforms.run(topic, input.payload);
    if (result.kind === "done") {
      prepared.payload = result.payload;
      return;
    }
    const deadLetterTopic = await deadLetters.ensure(topic);
    const messageId = prepared.messageId === "" ? idSource.uuid() : prepared.messageId;
    const pending = deadLetters.toPending(deadLetterTopic, {
      sourceTopic: topic.name,
      id: messageId,
      key: input.key ?? null,
      payload: input.payload,
      headers: input.headers ?? [],
      priority: input.priority ?? 0,
      retryCount: input.retryCount ?? 0,
      reason: result.reason,
      at: clock.now(),
    });
    prepared.pendingRecords.push(pending);
    prepared.outcome = {
      kind: "dead-lettered",
      topic: topic.name,
      messageId,
      payload: input.payload,
      deadLetterTopic: deadLetterTopic.name,
      reason: result.reason,
    };
  }

  #claim(
    tenant: Tenant,
    prepared: Prepared,
    options: PublishOptions,
    own: Set<Promise<unknown>>,
  ): void {
    if (options.isRequeue === true) return;
    const { ids, sequences } = this.#options;
    const { messageId, producer } = prepared.input;
    if (messageId !== undefined) {
      const claim = ids.claim(prepared.topic, messageId);
      if (claim.kind === "duplicate") {
        prepared.duplicate = claim.first;
        return;
      }
      own.add(claim.first);
      prepared.claims.push({ ...claim, after: undefined, toPending: () => [claim.pending] });
    }
    if (producer === undefined) return;
    const claim = sequences.claim(tenant, producer.id, producer.sequence, own);
    if (claim.kind === "new") {
      own.add(claim.stored);
      prepared.claims.push(claim);
      return;
    }
    prepared.duplicate = claim.stored;
    // A duplicate by sequence number does not use up its message id.
    const unused = new PlatformError("conflict", "The sequence number was used before.");
    for (const { release } of prepared.claims.splice(0)) release(unused);
  }

  /** Clients of wire protocols are paced: nothing else of the call is held while they wait. Adds what was admitted. */
  async #enter(all: readonly Prepared[], entered: [topic: Topic, count: number][]): Promise<void> {
    const { backlog } = this.#options;
    if (backlog.depthMax === 0) return;
    const indexes = new Map<Topic, number[]>();
    for (const [index, { topic, outcome, input }] of all.entries()) {
      if (outcome !== undefined || input.isWire !== true || !backlog.hasGroups(topic)) continue;
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

  async #admit(all: readonly Prepared[]): Promise<Topic[]> {
    const admitted: Topic[] = [];
    try {
      const { backlog } = this.#options;
      for (const [index, { topic, outcome, input, duplicate }] of all.entries()) {
        if (outcome !== undefined || duplicate !== undefined) continue;
        if (input.isWire === true) continue;
        await withinAsync(all, index, () => backlog.admit(topic));
        admitted.push(topic);
      }
      return admitted;
    } catch (error) {
      for (const topic of admitted) this.#options.backlog.settle(topic);
      throw error;
    }
  }

  async #preparePending(prepared: Prepared): Promise<void> {
    if (prepared.outcome !== undefined) return;
    const { clock, delays } = this.#options;
    const { input, topic, messageId, payload } = prepared;
    const now = clock.now();
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
    const content = { key, payload, headers: input.headers ?? [] };
    if (delayMs > 0) {
      const record = toRecord(content, facts, now);
      const due = await delays.toPending(topic, partition, record, now + delayMs);
      prepared.due = due;
      prepared.pendingRecords.unshift(due.pending);
      return;
    }
    const pending = {
      partition: topic.stored.partitions[partition]!,
      record: toRecord(content, facts, now),
    };
    prepared.place = { pending, partition, expiresAt: facts.expiresAt };
    prepared.pendingRecords.unshift(pending);
    if (input.companion === undefined) return;
    prepared.companion = input.companion.toPending(payload);
    prepared.pendingRecords.push(prepared.companion);
  }

  async #append(fresh: readonly Prepared[], { also = [], ordered }: PublishOptions): Promise<void> {
    const mark = await ordered?.begin();
    let isStored = false;
    try {
      await this.#appendEntry(fresh, mark === undefined ? also : [...also, mark]);
      isStored = true;
    } finally {
      ordered?.end(isStored);
    }
  }

  async #appendEntry(fresh: readonly Prepared[], also: readonly PendingRecord[]): Promise<void> {
    const pendingRecords = [
      ...fresh.flatMap(({ pendingRecords: own, claims }) => [
        ...own,
        ...claims.flatMap(({ toPending }) => toPending()),
      ]),
      ...also,
    ];
    if (pendingRecords.reduce((sum, { record }) => sum + sizeOf(record), 0) > ENTRY_BYTES_MAX) {
      throw new PlatformError(
        "payload_too_large",
        `Messages of one call may have ${ENTRY_BYTES_MAX} bytes together.`,
      );
    }
    const expiring = fresh.filter(({ place }) => place?.expiresAt !== undefined);
    for (const prepared of expiring) {
      prepared.expiring = this.#options.expiry.begin(prepared.place!.pending.partition);
      pendingRecords.push(...prepared.expiring.pendingRecords);
    }
    const offsets = await this.#options.store.append(pendingRecords).catch((error: unknown) => {
      for (const prepared of expiring) prepared.expiring?.release();
      throw error;
    });
    const offsetOf = new Map(pendingRecords.map((pending, index) => [pending, offsets[index]!]));
    for (const prepared of fresh) {
      prepared.outcome ??= this.#conclude(prepared, offsetOf);
      const { outcome } = prepared;
      if (outcome.kind === "dead-lettered") this.counts.deadLettered++;
      else {
        this.counts.published++;
        this.#options.tenantCounts.addPublished(prepared.topic.tenant, 1);
      }
      const place =
        outcome.kind === "stored"
          ? { partition: outcome.partition, offset: outcome.offset }
          : undefined;
      for (const { settle } of prepared.claims.splice(0)) settle(place);
    }
  }

  #conclude(prepared: Prepared, offsetOf: ReadonlyMap<PendingRecord, number>): PublishOutcome {
    const { topic, messageId, payload, place, due, expiring, companion, input } = prepared;
    const { backlog, delays } = this.#options;
    const common = { topic: topic.name, messageId, payload };
    if (due !== undefined) {
      delays.note(due, offsetOf.get(due.pending)!);
      backlog.noteDelayed(topic, 1);
      return { kind: "scheduled", ...common, dueMs: due.dueMs };
    }
    const { pending, partition, expiresAt } = place!;
    const offset = offsetOf.get(pending)!;
    if (input.isWire !== true) backlog.noteStored(topic, partition, offset);
    if (companion !== undefined) input.companion?.settle(offsetOf.get(companion)!);
    if (expiresAt !== undefined) expiring?.settle(offset, expiresAt);
    return { kind: "stored", ...common, partition, offset };
  }
}

/** Maximum total size of the messages of one call: more than a body of 10 MiB, below the batch limit of the log. */
const ENTRY_BYTES_MAX = 14 * 1024 * 1024;
