// What a topic asks of the records of a whole batch: its schema is checked, its transform is run.
import { promisify } from "node:util";
import { gzip, zstdCompress } from "node:zlib";
import { PlatformError } from "@platform/kernel/errors";
import type { IdSource } from "@platform/kernel/ids";
import type { Clock } from "@platform/kernel/time";
import { LogError } from "@platform/log";
import {
  BATCH_HEADER_BYTES,
  compressionOf,
  COMPRESSIONS,
  decodeBatch,
  encodeKept,
  readBatchHeader,
  sealBatch,
  type Compression,
  type StoredRecord,
} from "@platform/log/batch";
import type { DeadLetterWriter } from "../deadletter/dead-letter-writer.ts";
import type { Schemas } from "../schema/schemas.ts";
import type { PendingRecord } from "../store/store.ts";
import { isCompacted, type Topic } from "../topic/topics.ts";
import type { TransformResult, Transforms } from "../transform/transforms.ts";
import { toMessage } from "../message.ts";

/** Most bytes that a batch may take when decompressed, if its topic asks for a look inside. */
const DECOMPRESSED_BYTES_MAX = 32 * 1024 * 1024;
/** Batches that are looked into at once, over all topics; the others wait compressed. */
const SHAPING_MAX = 4;
/** Records of a batch whose transforms are under way at once. */
const TRANSFORMS_AT_ONCE = 16;
/** Violations that a refusal names. */
const VIOLATIONS_MAX = 100;

/** A record that does not fit: its place in the batch, and why. */
export interface RecordFault {
  index: number;
  message: string;
}

/** Thrown where records are not what the topic takes: then nothing of the batch is stored. */
export class UnfitBatch extends Error {
  readonly faults: readonly RecordFault[];

  constructor(message: string, faults: readonly RecordFault[]) {
    super(message);
    this.faults = faults;
  }
}

/** A batch as it is to be stored. */
export interface ShapedBatch {
  batch: Buffer;
  /** Dead letters of records whose transform failed; they belong into the batch's entry. */
  deadLetters: PendingRecord[];
}

interface BatchShaperOptions {
  schemas: Schemas;
  transforms: Transforms;
  deadLetters: DeadLetterWriter;
  idSource: IdSource;
  clock: Clock;
}

/**
 * Looks into batches of topics that have a schema or a transform, or are compacted. Tombstones of compacted topics pass:
 * there is nothing in them to check or to transform; records without a key do not, as compaction could never take them.
 * A record whose transform fails leaves a hole, as compaction does, so that offsets
 * and the sequence numbers of idempotent producers stay what the producer takes them for.
 */
export class BatchShaper {
  readonly #options: BatchShaperOptions;
  readonly #waiting: (() => void)[] = [];
  #underWay = 0;

  constructor(options: BatchShaperOptions) {
    this.#options = options;
  }

  /** Whether batches of a topic need a look inside. */
  isNeeded(topic: Topic): boolean {
    const { schemas, transforms } = this.#options;
    return schemas.find(topic) !== undefined || transforms.has(topic) || isCompacted(topic);
  }

  /**
   * The batch as it is to be stored: the same buffer where nothing changes. The checksum is not looked at.
   * Rejects with `UnfitBatch`, with the log's `invalid-batch` and `too-large`, and with `overloaded` where transforms
   * do not keep up or it is not done within `timeoutMs`.
   */
  async shape(topic: Topic, batch: Buffer, timeoutMs: number): Promise<ShapedBatch> {
    const untilMs = this.#options.clock.monotonicMs() + timeoutMs;
    if (this.#underWay >= SHAPING_MAX) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else this.#underWay++;
    try {
      this.#checkTime(untilMs);
      const { header, records } = await decodeBatch(batch, DECOMPRESSED_BYTES_MAX);
      checkKeys(topic, records);
      this.#checkSchema(topic, records);
      if (!this.#options.transforms.has(topic)) return { batch, deadLetters: [] };
      const { kept, deadLetters, isChanged } = await this.#transform(topic, records, untilMs);
      if (!isChanged) return { batch, deadLetters };
      const plain = encodeKept(header, kept);
      return { batch: await compressAs(plain, compressionOf(header.attributes)!), deadLetters };
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#underWay--;
      else next();
    }
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
      throw new UnfitBatch("Records do not fit the schema of the topic.", faults);
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
    // Its offset is not known yet, so it has no name of its own unless the client gave it one.
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
    throw new UnfitBatch("A compacted topic takes keyed records only.", faults);
}

const compressors: Record<Compression, ((section: Buffer) => Promise<Buffer>) | undefined> = {
  none: undefined,
  gzip: promisify<Buffer, Buffer>(gzip),
  // What Node.js cannot compress so comes as gzip, which every client reads.
  snappy: promisify<Buffer, Buffer>(gzip),
  lz4: promisify<Buffer, Buffer>(gzip),
  zstd: promisify<Buffer, Buffer>(zstdCompress),
};

/** An uncompressed batch compressed again. */
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
