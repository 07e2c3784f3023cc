// Checks the sizes and times of the records of a whole batch, validates and transforms them.
import { promisify } from "node:util";
import { gzip, zstdCompress } from "node:zlib";
import { PlatformError } from "@platform/kernel/errors";
import type { IdSource } from "@platform/kernel/ids";
import type { Clock } from "@platform/kernel/time";
import { LogError } from "@platform/log";
import {
  BATCH_HEADER_BYTES,
  boundSectionBytes,
  compressionOf,
  COMPRESSIONS,
  decodeRecordSection,
  DECOMPRESSED_BYTES_MAX_DEFAULT,
  encodeKept,
  findOutOfBounds,
  findOutOfBoundsSync,
  readBatchHeader,
  sealBatch,
  unpackBatch,
  unpackPlainBatch,
  type Compression,
  type OutOfBounds,
  type RecordBounds,
  type StoredRecord,
} from "@platform/log/batch";
import type { DeadLetterWriter } from "../deadletter/dead-letter-writer.ts";
import type { Schemas } from "../schema/schemas.ts";
import type { PendingRecord } from "../store/store.ts";
import { isCompacted, type Topic } from "../topic/topics.ts";
import type { TransformResult, Transforms } from "../transform/transforms.ts";
import { toMessage } from "../message/message.ts";
import { Slots } from "./slots.ts";

/** Maximum decompressed size of a batch whose topic has a schema or transform, or is compacted. */
const DECOMPRESSED_BYTES_MAX = 32 * 1024 * 1024;
/** Batches processed in parallel over all topics, and those whose records are only measured; others wait compressed. */
const SHAPING_MAX = 4;
const MEASURING_MAX = 2;
/** Transforms of one batch in parallel. */
const TRANSFORMS_AT_ONCE = 16;
/** Violations listed in a rejection. */
const VIOLATIONS_MAX = 100;

/** A rejected record: its index in the batch, and the reason. */
export interface RecordFault {
  index: number;
  message: string;
}

/** A rule of records: the topic's schema and keys, the largest message, or the topic's bounds of timestamps. */
export type RecordRule = "content" | OutOfBounds["bound"];

/** Thrown if records violate a rule: no record of the batch is stored. */
export class UnfitBatch extends Error {
  readonly rule: RecordRule;
  readonly faults: readonly RecordFault[];

  constructor(rule: RecordRule, message: string, faults: readonly RecordFault[]) {
    super(message);
    this.rule = rule;
    this.faults = faults;
  }
}

/** Time by which timestamps of records may differ from the broker's, in ms; may be infinite. */
export interface TimeBounds {
  beforeMs: number;
  afterMs: number;
}

/** A batch in its stored form. */
export interface ShapedBatch {
  batch: Buffer;
  /** Dead letters of records whose transform failed; append them in the batch's entry. */
  deadLetters: PendingRecord[];
}

interface BatchShaperOptions {
  schemas: Schemas;
  transforms: Transforms;
  deadLetters: DeadLetterWriter;
  idSource: IdSource;
  clock: Clock;
  /** Largest message: key, value and headers, in bytes. */
  messageBytesMax: number;
}

/**
 * Measures the records of batches, and processes batches of topics that have a schema or a transform, or are compacted.
 * Tombstones of compacted topics pass unchanged; records without a key are rejected there, since compaction could never
 * remove them. A record whose transform fails leaves a gap, as compaction does, so that offsets and the sequence numbers of
 * idempotent producers stay valid.
 */
export class BatchShaper {
  readonly #options: BatchShaperOptions;
  readonly #shaping = new Slots(SHAPING_MAX);
  // Slow transforms do not delay batches that are only measured.
  readonly #measuring = new Slots(MEASURING_MAX);

  constructor(options: BatchShaperOptions) {
    this.#options = options;
  }

  /** True if `shape` must process a batch; otherwise `check` is enough. Throws the log's `invalid-batch`. */
  isNeeded(topic: Topic, batch: Buffer, times: TimeBounds | undefined): boolean {
    if (this.#hasRules(topic)) return true;
    const isCompressed = compressionOf(readBatchHeader(batch)!.attributes) !== "none";
    if (!isCompressed) return false;
    return times !== undefined || boundSectionBytes(batch) > this.#options.messageBytesMax;
  }

  /** Checks the records of a batch that `shape` need not process. Throws `UnfitBatch`, and the log's `invalid-batch`. */
  check(batch: Buffer, times: TimeBounds | undefined): void {
    if (times === undefined && batch.length <= this.#options.messageBytesMax) return;
    const plain = unpackPlainBatch(batch);
    if (plain === undefined) return;
    const bounds = this.#boundsOf(times);
    refuseOutOfBounds(findOutOfBoundsSync(plain, bounds), bounds);
  }

  /**
   * Returns the batch in its stored form: the same buffer if nothing changes. Does not verify the checksum.
   * Rejects with `UnfitBatch`, with the log's `invalid-batch` and `too-large`, and with `overloaded` if transforms are too
   * slow or `timeoutMs` is exceeded.
   */
  shape(
    topic: Topic,
    batch: Buffer,
    times: TimeBounds | undefined,
    timeoutMs: number,
  ): Promise<ShapedBatch> {
    const untilMs = this.#options.clock.monotonicMs() + timeoutMs;
    if (this.#hasRules(topic)) {
      return this.#shaping.run(() => this.#shapeRecords(topic, batch, times, untilMs));
    }
    return this.#measuring.run(async () => {
      await this.#unpack(batch, times, untilMs, DECOMPRESSED_BYTES_MAX_DEFAULT);
      return { batch, deadLetters: [] };
    });
  }

  #hasRules(topic: Topic): boolean {
    const { schemas, transforms } = this.#options;
    return schemas.find(topic) !== undefined || transforms.has(topic) || isCompacted(topic);
  }

  async #shapeRecords(
    topic: Topic,
    batch: Buffer,
    times: TimeBounds | undefined,
    untilMs: number,
  ): Promise<ShapedBatch> {
    const { header, section } = await this.#unpack(batch, times, untilMs, DECOMPRESSED_BYTES_MAX);
    const records = decodeRecordSection(header, section);
    checkKeys(topic, records);
    this.#checkSchema(topic, records);
    if (!this.#options.transforms.has(topic)) return { batch, deadLetters: [] };
    const { kept, deadLetters, isChanged } = await this.#transform(topic, records, untilMs);
    if (!isChanged) return { batch, deadLetters };
    const plain = encodeKept(header, kept);
    return { batch: await compressAs(plain, compressionOf(header.attributes)!), deadLetters };
  }

  /** Decompresses a batch and checks sizes and times of its records. */
  async #unpack(batch: Buffer, times: TimeBounds | undefined, untilMs: number, bytesMax: number) {
    this.#checkTime(untilMs);
    const unpacked = await unpackBatch(batch, bytesMax);
    const bounds = this.#boundsOf(times);
    refuseOutOfBounds(await findOutOfBounds(unpacked, bounds), bounds);
    return unpacked;
  }

  #boundsOf(times: TimeBounds | undefined): RecordBounds {
    const { messageBytesMax: bytesMax, clock } = this.#options;
    if (times === undefined) return { bytesMax };
    const now = clock.now();
    return { bytesMax, times: { earliest: now - times.beforeMs, latest: now + times.afterMs } };
  }

  #checkSchema(topic: Topic, records: readonly StoredRecord[]): void {
    const { schemas } = this.#options;
    if (schemas.find(topic) === undefined) return;
    const faults: RecordFault[] = [];
    for (const [index, { value }] of records.entries()) {
      if (value === null && isCompacted(topic)) continue;
      try {
        schemas.check(topic, value ?? Buffer.alloc(0));
      } catch (error) {
        if (!(error instanceof PlatformError)) throw error;
        faults.push({ index, message: error.detail });
        if (faults.length === VIOLATIONS_MAX) break;
      }
    }
    if (faults.length > 0) {
      throw new UnfitBatch("content", "Records violate the schema of the topic.", faults);
    }
  }

  async #transform(topic: Topic, records: readonly StoredRecord[], untilMs: number) {
    const kept: StoredRecord[] = [];
    const deadLetters: PendingRecord[] = [];
    let isChanged = false;
    for (let start = 0; start < records.length; start += TRANSFORMS_AT_ONCE) {
      this.#checkTime(untilMs);
      const slice = records.slice(start, start + TRANSFORMS_AT_ONCE);
      const results = await Promise.all(slice.map((record) => this.#run(topic, record)));
      for (const [index, result] of results.entries()) {
        const record = slice[index]!;
        if (result === undefined) kept.push(record);
        else if (result.kind === "done") {
          isChanged ||= record.value === null || !result.payload.equals(record.value);
          kept.push({ ...record, value: result.payload });
        } else {
          isChanged = true;
          deadLetters.push(await this.#bury(topic, record, result.reason));
        }
      }
    }
    return { kept, deadLetters, isChanged };
  }

  async #run(topic: Topic, { value }: StoredRecord): Promise<TransformResult | undefined> {
    if (value === null && isCompacted(topic)) return undefined;
    return this.#options.transforms.run(topic, value ?? Buffer.alloc(0));
  }

  async #bury(topic: Topic, record: StoredRecord, reason: string): Promise<PendingRecord> {
    const { deadLetters, idSource, clock } = this.#options;
    const deadLetterTopic = await deadLetters.ensure(topic);
    // The offset is not known yet, so the record has no id unless the client set one.
    const { isOwn, id, key, payload, headers, priority, retryCount } = toMessage(topic, 0, record);
    return deadLetters.toPending(deadLetterTopic, {
      sourceTopic: topic.name,
      id: isOwn ? id : idSource.uuid(),
      key,
      payload,
      headers,
      priority,
      retryCount,
      reason,
      at: clock.now(),
    });
  }

  #checkTime(untilMs: number): void {
    if (this.#options.clock.monotonicMs() <= untilMs) return;
    throw new LogError("overloaded", "the records were not transformed in time");
  }
}

function checkKeys(topic: Topic, records: readonly StoredRecord[]): void {
  if (!isCompacted(topic)) return;
  const faults: RecordFault[] = [];
  for (const [index, { key }] of records.entries()) {
    if (key === null) faults.push({ index, message: "The record has no key." });
    if (faults.length === VIOLATIONS_MAX) break;
  }
  if (faults.length > 0)
    throw new UnfitBatch("content", "A compacted topic takes keyed records only.", faults);
}

function refuseOutOfBounds(found: OutOfBounds | undefined, { bytesMax }: RecordBounds): void {
  if (found === undefined) return;
  const { index, bound } = found;
  const message =
    bound === "size"
      ? `A message may have ${bytesMax} bytes at most.`
      : "The timestamp is outside the topic's bounds.";
  throw new UnfitBatch(bound, message, [{ index, message }]);
}

const compressors: Record<Compression, ((section: Buffer) => Promise<Buffer>) | undefined> = {
  none: undefined,
  gzip: promisify<Buffer, Buffer>(gzip),
  // Compressions that Node.js cannot write become gzip, which every client reads.
  snappy: promisify<Buffer, Buffer>(gzip),
  lz4: promisify<Buffer, Buffer>(gzip),
  zstd: promisify<Buffer, Buffer>(zstdCompress),
};

/** Compresses an uncompressed batch. */
async function compressAs(plain: Buffer, compression: Compression): Promise<Buffer> {
  const compress = compressors[compression];
  const header = readBatchHeader(plain)!;
  if (compress === undefined || header.recordCount === 0) return plain;
  const section = await compress(plain.subarray(BATCH_HEADER_BYTES));
  const batch = Buffer.allocUnsafe(BATCH_HEADER_BYTES + section.length);
  section.copy(batch, BATCH_HEADER_BYTES);
  const code = COMPRESSIONS.indexOf(compression === "zstd" ? "zstd" : "gzip");
  sealBatch(batch, { ...header, attributes: header.attributes | code });
  return batch;
}
