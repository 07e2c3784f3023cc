// The audit log: requests as JSON lines in objects of the bucket `system-access-logs`.
import { every, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import type { Logger } from "@platform/kernel/log";
import { LineBuffer } from "../log/line-buffer.ts";
import { ACCESS_LOG_BUCKET, type Owner } from "../model/bucket.ts";
import { StoreError } from "../model/store-error.ts";
import type { Store } from "../object-store.ts";

const EXPIRY_DAYS = 30;
const FLUSH_MS = 10_000;
const BUFFER_BYTES = 262_144;
/** 1 MiB. */
const FLUSH_BUFFERS = 4;
/** 16 MiB. */
const BUFFERS_MAX = 64;

/** One request. */
export interface AuditEntry {
  request_id: string;
  timestamp: string;
  requester: string;
  bucket: string;
  key: string;
  operation: string;
  /** `host:port` */
  source_ip: string;
  status: number;
  /** The code of an error answer. */
  error_code: string | undefined;
}

/** Options of the audit log. */
export interface AuditLogOptions {
  store: Store;
  owner: Owner;
  region: string;
  clock: Clock;
  log: Logger;
}

/**
 * Collects entries and writes them every ten seconds, or as soon as there is 1 MiB of them. It bypasses the API, so it
 * never logs itself. While the store refuses entries, the oldest beyond 16 MiB are dropped and counted.
 */
export class AuditLog {
  readonly #options: AuditLogOptions;
  readonly #timer: RepeatingTimer;
  /** The buffer that receives new lines. */
  #buffers: LineBuffer[] = [];
  #dropped = 0;
  #sequence = 0;
  #flushing: Promise<void> = Promise.resolve();
  #isFlushing = false;

  constructor(options: AuditLogOptions) {
    this.#options = options;
    this.#timer = every(
      FLUSH_MS,
      () => this.flush(),
      () => undefined,
    );
  }

  /** Entries that were dropped because they could not be written. */
  get dropped(): number {
    return this.#dropped;
  }

  add(entry: AuditEntry): void {
    const line = `${JSON.stringify(entry)}\n`;
    if (this.#buffers.at(-1)?.add(line) === true) return;
    const buffer = new LineBuffer(BUFFER_BYTES);
    if (!buffer.add(line)) {
      this.#dropped += 1;
      return;
    }
    this.#buffers.push(buffer);
    this.#dropOldest();
    if (this.#buffers.length > FLUSH_BUFFERS && !this.#isFlushing) void this.flush();
  }

  /** Writes all entries. Never rejects: entries that cannot be written stay for the next time. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#write());
    return this.#flushing;
  }

  /** Writes the remaining entries and stops. */
  async close(): Promise<void> {
    await this.#timer.stop();
    await this.flush();
  }

  async #write(): Promise<void> {
    if (this.#buffers.length === 0) return;
    this.#isFlushing = true;
    const buffers = this.#buffers;
    this.#buffers = [];
    try {
      await this.#makeBucket();
      await this.#put(Buffer.concat(buffers.map((buffer) => buffer.view())));
    } catch (error) {
      this.#buffers = [...buffers, ...this.#buffers];
      this.#dropOldest();
      this.#options.log.warn("the audit log could not be written", { error });
    } finally {
      this.#isFlushing = false;
    }
  }

  #dropOldest(): void {
    while (this.#buffers.length > BUFFERS_MAX) this.#dropped += this.#buffers.shift()!.lines;
  }

  async #put(body: Buffer): Promise<void> {
    const { store, clock, owner } = this.#options;
    const now = new Date(clock.now()).toISOString();
    const [day, time] = now.split("T") as [string, string];
    this.#sequence += 1;
    const name = `${time.slice(0, 12).replaceAll(/[:.]/g, "")}-${process.pid}-${this.#sequence}.jsonl`;
    const upload = store.objects.beginPut({
      bucket: ACCESS_LOG_BUCKET,
      key: `${day.replaceAll("-", "/")}/${name}`,
      contentLength: body.length,
      headers: { contentType: "application/x-ndjson" },
      owner,
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

  async #makeBucket(): Promise<void> {
    const { store, owner, region } = this.#options;
    if (store.buckets.find(ACCESS_LOG_BUCKET) !== undefined) return;
    const rule = { id: "expire", enabled: true, filter: {}, expiration: { days: EXPIRY_DAYS } };
    try {
      const settings = { lifecycle: { rules: [rule] } };
      await store.buckets.create({ bucket: ACCESS_LOG_BUCKET, owner, region, settings });
    } catch (error) {
      if (!(error instanceof StoreError && error.code.startsWith("BucketAlready"))) throw error;
    }
  }
}
