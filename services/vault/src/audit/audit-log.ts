// The audit log: requests as JSON lines in objects of the bucket `system-access-logs`.
import type { Clock } from "@platform/kernel/time";
import type { Logger } from "@platform/kernel/log";
import { StoreError } from "../store.ts";
import type { Owner, Store } from "../store.ts";

/** The bucket that the log is written to. */
export const AUDIT_BUCKET = "system-access-logs";
const EXPIRY_DAYS = 30;
const FLUSH_MS = 10_000;
const FLUSH_BYTES = 1_048_576;
const BUFFER_BYTES_MAX = 16 * 1_048_576;

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
  /** Code of an error answer. */
  error_code?: string;
}

/** What the log is made of. */
export interface AuditLogOptions {
  store: Store;
  owner: Owner;
  region: string;
  clock: Clock;
  log: Logger;
  /** Default 10 000. */
  flushMs?: number;
}

/**
 * Gathers entries and writes them every ten seconds, or as soon as there is 1 MiB of them. Writing goes past the API, so
 * the log never tells of itself. Where the store does not take them, the oldest beyond 16 MiB are dropped and counted.
 */
export class AuditLog {
  readonly #options: AuditLogOptions;
  readonly #timer: NodeJS.Timeout;
  #lines: string[] = [];
  #bytes = 0;
  #dropped = 0;
  #sequence = 0;
  #flushing: Promise<void> = Promise.resolve();
  #isFlushing = false;

  constructor(options: AuditLogOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.flush(), options.flushMs ?? FLUSH_MS);
    this.#timer.unref();
  }

  /** Entries that were dropped because they could not be written. */
  get dropped(): number {
    return this.#dropped;
  }

  add(entry: AuditEntry): void {
    const line = `${JSON.stringify(entry)}\n`;
    this.#lines.push(line);
    this.#bytes += line.length;
    while (this.#bytes > BUFFER_BYTES_MAX) {
      this.#bytes -= this.#lines.shift()!.length;
      this.#dropped += 1;
    }
    if (this.#bytes >= FLUSH_BYTES && !this.#isFlushing) void this.flush();
  }

  /** Writes what there is. Never rejects: what could not be written waits for the next time. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#write());
    return this.#flushing;
  }

  /** Writes what is left and stops. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.flush();
  }

  async #write(): Promise<void> {
    if (this.#lines.length === 0) return;
    this.#isFlushing = true;
    const lines = this.#lines;
    const bytes = this.#bytes;
    this.#lines = [];
    this.#bytes = 0;
    try {
      await this.#makeBucket();
      await this.#put(Buffer.from(lines.join("")));
    } catch (error) {
      this.#lines = [...lines, ...this.#lines];
      this.#bytes += bytes;
      this.#options.log.warn("the audit log could not be written", { error });
    } finally {
      this.#isFlushing = false;
    }
  }

  async #put(body: Buffer): Promise<void> {
    const { store, clock, owner } = this.#options;
    const now = new Date(clock.now()).toISOString();
    const [day, time] = now.split("T") as [string, string];
    this.#sequence += 1;
    const name = `${time.slice(0, 12).replaceAll(/[:.]/g, "")}-${process.pid}-${this.#sequence}.jsonl`;
    const upload = store.beginPut({
      bucket: AUDIT_BUCKET,
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
    if (store.findBucket(AUDIT_BUCKET) !== undefined) return;
    const rule = { id: "expire", enabled: true, filter: {}, expiration: { days: EXPIRY_DAYS } };
    try {
      const settings = { lifecycle: { rules: [rule] } };
      await store.createBucket({ bucket: AUDIT_BUCKET, owner, region, settings });
    } catch (error) {
      if (!(error instanceof StoreError && error.code.startsWith("BucketAlready"))) throw error;
    }
  }
}
