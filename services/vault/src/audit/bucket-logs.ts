// Server access logs: the requests to buckets with logging, as objects in the buckets that they name.
import { randomBytes } from "node:crypto";
import type { Logger } from "@platform/kernel/log";
import { every, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import type { Authorizer } from "../access/authorizer.ts";
import { isOwnBucket, type Bucket } from "../model/bucket.ts";
import type { BucketLogging } from "../model/bucket-settings.ts";
import { StoreError } from "../model/store-error.ts";
import type { Store } from "../object-store.ts";

const TICK_MS = 1_000;
/** Lines of one bucket are written as soon as they have this size. */
const OBJECT_BYTES = 5 * 1_048_576;
/** Lines that wait: of one bucket, and of all. The oldest beyond that are dropped and counted. */
const BUCKET_BYTES_MAX = 4 * OBJECT_BYTES;
const TOTAL_BYTES_MAX = 128 * 1_048_576;
const WARN_MS = 3_600_000;

/** Options of {@link BucketLogs}. */
export interface BucketLogsOptions {
  store: Store;
  authorizer: Authorizer;
  clock: Clock;
  log: Logger;
  /** Time for which lines are collected at most. */
  intervalMs: number;
  /** Called with the outcome of each object, and the lines in it. */
  onDelivered: (outcome: "delivered" | "refused" | "failed", lines: number) => void;
  onDropped: (lines: number) => void;
}

/** Lines of one bucket and one day. */
interface Batch {
  readonly source: string;
  readonly sinceMs: number;
  readonly day: number;
  lines: string[];
  bytes: number;
}

const DAY_MS = 86_400_000;

/**
 * Collects lines and writes them after the interval, or as soon as a bucket has 5 MiB of them. As in S3, lines are delivered
 * as well as possible: those that were not written yet are lost with the process. The writes bypass the API, so that logs of
 * a bucket into itself do not log themselves.
 */
export class BucketLogs {
  readonly #options: BucketLogsOptions;
  readonly #timer: RepeatingTimer;
  /** The batch that receives the lines of a bucket, and earlier ones. */
  readonly #batches = new Map<string, Batch[]>();
  readonly #bytes = new Map<string, number>();
  #total = 0;
  #flushing: Promise<void> = Promise.resolve();
  #warnedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: BucketLogsOptions) {
    this.#options = options;
    this.#timer = every(
      TICK_MS,
      () => this.#write(false),
      () => undefined,
    );
  }

  /** True if requests to a bucket are logged. */
  isLogged(bucket: string): boolean {
    return this.#options.store.buckets.find(bucket)?.settings.logging !== undefined;
  }

  /** Adds the line of a request to a bucket. */
  add(source: string, line: string, endedMs: number): void {
    const batches = this.#batches.get(source) ?? [];
    this.#batches.set(source, batches);
    const day = Math.floor(endedMs / DAY_MS);
    let batch = batches.at(-1);
    if (batch === undefined || batch.day !== day || batch.bytes >= OBJECT_BYTES) {
      batch = { source, sinceMs: this.#options.clock.now(), day, lines: [], bytes: 0 };
      batches.push(batch);
    }
    batch.lines.push(line);
    batch.bytes += line.length;
    this.#count(source, line.length);
    this.#dropOldest(source);
  }

  /** Writes all lines. */
  async close(): Promise<void> {
    await this.#timer.stop();
    await this.#write(true);
  }

  #write(isAll: boolean): Promise<void> {
    this.#flushing = this.#flushing.then(async () => {
      const dueMs = this.#options.clock.now() - this.#options.intervalMs;
      // Those that fail return to the map, for the next time.
      const waiting = Array.from(this.#batches.values()).flat();
      for (const batch of waiting) {
        const isDue = isAll || batch.sinceMs <= dueMs || batch.bytes >= OBJECT_BYTES;
        if (isDue) await this.#deliver(batch);
      }
    });
    return this.#flushing;
  }

  // A batch whose bucket cannot be written waits for the next time; one that nobody wants any more is gone.
  async #deliver(batch: Batch): Promise<void> {
    const { source, lines } = batch;
    const { store, onDelivered } = this.#options;
    this.#remove(batch);
    const bucket = store.buckets.find(source);
    const logging = bucket?.settings.logging;
    if (bucket === undefined || logging === undefined) {
      onDelivered("refused", lines.length);
      return;
    }
    const target = store.buckets.find(logging.targetBucket);
    const key = nameLog(logging, bucket, this.#options, batch);
    if (target === undefined || !this.#mayWrite(bucket, target, key)) {
      this.#warn(source, logging.targetBucket, undefined);
      onDelivered("refused", lines.length);
      return;
    }
    try {
      await this.#put(target, key, Buffer.from(lines.join("")));
      onDelivered("delivered", lines.length);
    } catch (error) {
      onDelivered("failed", lines.length);
      this.#warn(source, target.name, error);
      const isLasting = error instanceof StoreError && error.code === "QuotaExceeded";
      if (isLasting) this.#options.onDropped(lines.length);
      else this.#restore(batch);
    }
  }

  // The bucket may be another one by now, and its policy decides about writes of the service as about others.
  #mayWrite(source: Bucket, target: Bucket, key: string): boolean {
    if (isOwnBucket(target.name) || target.region !== source.region) return false;
    if (target.settings.policy === undefined) return true;
    return this.#options.authorizer.isAllowed({
      caller: { kind: "root", accessKey: "" },
      action: "s3:PutObject",
      bucket: target,
      bucketName: target.name,
      key,
      values: new Map([
        ["aws:principalisawsservice", ["true"]],
        ["aws:principalservicename", ["logging.s3.amazonaws.com"]],
        ["aws:sourcearn", [`arn:aws:s3:::${source.name}`]],
        ["aws:sourceaccount", [this.#options.authorizer.account.accountId]],
        ["aws:securetransport", ["true"]],
      ]),
    });
  }

  async #put(target: Bucket, key: string, body: Buffer): Promise<void> {
    const { store } = this.#options;
    const encryption = store.keys.chooseDefault(target.settings.encryption);
    const upload = store.objects.beginPut({
      bucket: target.name,
      key,
      contentLength: body.length,
      headers: { contentType: "text/plain" },
      owner: target.owner,
      ...(encryption === undefined ? {} : { encryption }),
    });
    try {
      await upload.write(body);
      await upload.finish();
      await upload.commit();
    } catch (error) {
      await upload.abort();
      throw error;
    }
  }

  #restore(batch: Batch): void {
    const batches = this.#batches.get(batch.source) ?? [];
    this.#batches.set(batch.source, [batch, ...batches]);
    this.#count(batch.source, batch.bytes);
    this.#dropOldest(batch.source);
  }

  #remove(batch: Batch): void {
    const rest = (this.#batches.get(batch.source) ?? []).filter((one) => one !== batch);
    if (rest.length > 0) this.#batches.set(batch.source, rest);
    else this.#batches.delete(batch.source);
    this.#count(batch.source, -batch.bytes);
  }

  #count(source: string, bytes: number): void {
    const left = (this.#bytes.get(source) ?? 0) + bytes;
    if (left > 0) this.#bytes.set(source, left);
    else this.#bytes.delete(source);
    this.#total += bytes;
  }

  // A busy bucket does not take the room of others.
  #dropOldest(source: string): void {
    while ((this.#bytes.get(source) ?? 0) > BUCKET_BYTES_MAX) this.#drop(source);
    while (this.#total > TOTAL_BYTES_MAX) {
      const [[largest]] = [...this.#bytes].sort(([, one], [, other]) => other - one) as [
        [string, number],
      ];
      this.#drop(largest);
    }
  }

  #drop(source: string): void {
    const [oldest] = this.#batches.get(source) ?? [];
    if (oldest === undefined) return;
    this.#remove(oldest);
    this.#options.onDropped(oldest.lines.length);
  }

  #warn(bucket: string, target: string, error: unknown): void {
    const nowMs = this.#options.clock.now();
    if (nowMs - this.#warnedAtMs < WARN_MS) return;
    this.#warnedAtMs = nowMs;
    this.#options.log.warn("access logs of a bucket cannot be written", { bucket, target, error });
  }
}

// `PREFIX2026-11-30-07-00-00-0123456789ABCDEF`, or below `account/region/bucket/year/month/day/`.
function nameLog(
  { targetPrefix, partitionedBy }: BucketLogging,
  bucket: Bucket,
  { clock, authorizer }: BucketLogsOptions,
  { day }: Batch,
): string {
  const isEvent = partitionedBy === "EventTime";
  const iso = new Date(isEvent ? day * DAY_MS : clock.now()).toISOString();
  const date = iso.slice(0, 10);
  const time = isEvent ? "00-00-00" : iso.slice(11, 19).replaceAll(":", "-");
  const name = `${date}-${time}-${randomBytes(8).toString("hex").toUpperCase()}`;
  if (partitionedBy === undefined) return `${targetPrefix}${name}`;
  const { accountId } = authorizer.account;
  const folder = `${accountId}/${bucket.region}/${bucket.name}/${date.replaceAll("-", "/")}`;
  return `${targetPrefix}${folder}/${name}`;
}
