// One remote: its connections, its budget, its health, and records that are written to it and read from it.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { EgressGuard } from "@platform/kernel/egress";
import type { Clock } from "@platform/kernel/time";
import {
  S3Client,
  S3ClientError,
  uploadObject,
  type S3Attempt,
  type S3ClientOptions,
} from "@platform/s3";
import type { RemoteKey, RemotePlace } from "../model/blob.ts";
import type { RemoteDocument, RemoteSettings, SecretSealer } from "../model/remote.ts";
import { StoreError } from "../model/store-error.ts";
import { RecordDigest } from "./record-digest.ts";
import { toReadError } from "./remote-errors.ts";

/** A read that a client waits for takes no longer; then it is 503. */
const READ_MS_MAX = 30_000;
/** Requests that began with former settings may end. */
const FORMER_MS = 150_000;
/** A silent remote is left sooner than that. */
const STALL_MS = 10_000;
const READ_ATTEMPTS_MAX = 3;
const READ_BACK_BYTES = 4 * 1024 * 1024;
/** Tables of 64 bytes at most, with their names about 1 MiB. */
const TABLES_MAX = 4_096;
const SOCKETS_MAX = 32;
const REQUESTS_MAX = 256;
/** Requests of clients that are passed on have connections of their own, so that slow clients hold up nothing else. */
const FORWARDED_SOCKETS_MAX = 256;
const FORWARDED_REQUESTS_MAX = 1_024;
const FORWARDED_STALL_MS = 30_000;

/** Parts that all remotes share. */
export interface RemoteEnvironment {
  readonly secrets: SecretSealer;
  readonly guard: EgressGuard;
  readonly clock: Clock;
  /** The id of this store, with which remotes find requests that come back. */
  readonly storeId: () => string;
}

/** Counts since the start, by operation and result. */
export interface RemoteCounts {
  readonly requests: ReadonlyMap<string, number>;
  readonly sentBytes: number;
  readonly receivedBytes: number;
  /** Blocks that did not match their checksum. */
  readonly wrongBlocks: number;
}

/** Health of a remote, by its last requests. */
export interface RemoteHealth {
  readonly state: "unknown" | "up" | "failing";
  /** Epoch ms of the last request that changed or confirmed the state. */
  readonly sinceMs: number | undefined;
  readonly reason: string | undefined;
}

/** A record to write: read once, from its beginning to its end. */
export interface RecordSource {
  readonly bytes: number;
  read(position: number, length: number): Promise<Uint8Array>;
}

/** A registered remote that is open for requests. */
export class Remote {
  readonly #environment: RemoteEnvironment;
  readonly #requests = new Map<string, number>();
  readonly #tables = new Map<string, Buffer>();
  #document: RemoteDocument;
  #settings: RemoteSettings;
  #client: S3Client | undefined;
  #forwarder: S3Client | undefined;
  #sentBytes = 0;
  #receivedBytes = 0;
  #health: RemoteHealth = { state: "unknown", sinceMs: undefined, reason: undefined };
  #freeAtMs = 0;
  wrongBlocks = 0;

  constructor(document: RemoteDocument, environment: RemoteEnvironment) {
    this.#document = document;
    this.#settings = omitSecret(document);
    this.#environment = environment;
  }

  get settings(): RemoteSettings {
    return this.#settings;
  }

  get document(): RemoteDocument {
    return this.#document;
  }

  get counts(): RemoteCounts {
    const { wrongBlocks } = this;
    const bytes = { sentBytes: this.#sentBytes, receivedBytes: this.#receivedBytes };
    return { requests: this.#requests, ...bytes, wrongBlocks };
  }

  get health(): RemoteHealth {
    return this.#health;
  }

  /** Uses other settings or credentials from the next request on. Requests in flight end with the former ones. */
  replace(document: RemoteDocument): void {
    this.#document = document;
    this.#settings = omitSecret(document);
    const former = [this.#client, this.#forwarder];
    this.#client = undefined;
    this.#forwarder = undefined;
    this.#tables.clear();
    for (const one of former)
      if (one !== undefined) setTimeout(() => one.close(), FORMER_MS).unref();
  }

  /** A client of a bucket there. Throws InternalError if its secret or its certificates cannot be read. */
  client(bucket: string): S3Client {
    this.#client ??= this.#connect(bucket, {
      socketsMax: SOCKETS_MAX,
      requestsMax: REQUESTS_MAX,
      stallMs: STALL_MS,
    });
    return this.#client.forBucket(bucket);
  }

  /** A client for requests that are passed on; "" for the service itself. Throws as `client`. */
  forwarder(bucket: string): S3Client {
    this.#forwarder ??= this.#connect(bucket, {
      socketsMax: FORWARDED_SOCKETS_MAX,
      requestsMax: FORWARDED_REQUESTS_MAX,
      stallMs: FORWARDED_STALL_MS,
    });
    return this.#forwarder.forBucket(bucket);
  }

  /** Closes the connections. */
  close(): void {
    this.#client?.close();
    this.#forwarder?.close();
  }

  #connect(
    bucket: string,
    limits: Required<Pick<S3ClientOptions, "socketsMax" | "requestsMax" | "stallMs">>,
  ): S3Client {
    const { endpoint, region, path_style, ca_file, access_key, name, sealed } = this.#document;
    const { secrets, guard, clock, storeId } = this.#environment;
    let secretKey: string;
    try {
      secretKey = secrets.open(sealed, nameSecret(name));
    } catch (cause) {
      const text = `The secret key of the remote ${name} is sealed with another master key: set it again`;
      throw new StoreError("InternalError", text, {}, { cause });
    }
    return new S3Client({
      endpoint: new URL(endpoint),
      region,
      bucket,
      isPathStyle: path_style,
      headers: { "x-store-hops": storeId() },
      credentials: () => ({ accessKey: access_key, secretKey }),
      guard,
      ...(ca_file === undefined ? {} : { ca: [readFileSync(ca_file, "utf8")] }),
      ...limits,
      clock,
      onAttempt: (attempt) => this.#observe(attempt),
    });
  }

  #observe({ operation, code, serverCode }: S3Attempt): void {
    const name = `${operation} ${code}`;
    this.#requests.set(name, (this.#requests.get(name) ?? 0) + 1);
    if (code === "aborted" || code === "busy") return;
    const state = HEALTHY.has(code) ? "up" : "failing";
    const reason = state === "up" ? undefined : `${code}${serverCode ? ` (${serverCode})` : ""}`;
    this.#health = { state, sinceMs: this.#environment.clock.now(), reason };
  }

  /**
   * Writes a record under a new key, and makes sure that the remote has it: by the checksum of the whole object that the remote
   * returns, or by reading it back. An ETag proves nothing. Rejects otherwise; the key may or may not exist then.
   */
  async write({ bucket, key }: RemoteKey, source: RecordSource, signal: AbortSignal) {
    const client = this.client(bucket);
    const digest = new RecordDigest();
    const read = async (position: number, length: number): Promise<Uint8Array> => {
      await this.#pace(length, signal);
      const piece = await source.read(position, length);
      digest.add(piece);
      this.#sentBytes += piece.length;
      return piece;
    };
    const checksum = { algorithm: "CRC32C" as const, digest: () => digest.crc32c };
    try {
      await uploadObject(
        client,
        key,
        { bytes: source.bytes, read, checksum },
        { isNew: true, signal },
      );
    } catch (error) {
      // The key is random: it is this upload's own, of an attempt whose answer was lost.
      if (!(error instanceof S3ClientError) || error.code !== "precondition_failed") throw error;
    }
    await this.#verify(client, key, source.bytes, digest, signal);
  }

  async #verify(
    client: S3Client,
    key: string,
    bytes: number,
    digest: RecordDigest,
    signal: AbortSignal,
  ): Promise<void> {
    const head = await client.head(key, { withChecksums: true, signal });
    if (head === undefined) throw wrongObject("it does not have the object that it accepted");
    if (head.bytes !== bytes) throw wrongObject(`it has ${head.bytes} of ${bytes} bytes`);
    const own = head.checksums.find(({ algorithm }) => algorithm === "CRC32C");
    if (own !== undefined) {
      if (own.value === digest.crc32c) return;
      throw wrongObject("it has other bytes");
    }
    const found = new RecordDigest();
    for (let at = 0; at < bytes; at += READ_BACK_BYTES) {
      const end = Math.min(bytes, at + READ_BACK_BYTES);
      await this.#pace(end - at, signal);
      const piece = await client.getRange(key, at, end, { signal });
      this.#receivedBytes += piece.length;
      found.add(piece);
    }
    if (found.sha256 !== digest.sha256) throw wrongObject("it has other bytes");
  }

  /** Reads a part of a record for a client that waits. Throws ServiceUnavailable, InvalidObjectState or InternalError. */
  async read({ bucket, key }: RemotePlace, start: number, end: number): Promise<Buffer> {
    const signal = AbortSignal.timeout(READ_MS_MAX);
    try {
      const options = { signal, attemptsMax: READ_ATTEMPTS_MAX };
      const bytes = await this.client(bucket).getRange(key, start, end, options);
      this.#receivedBytes += bytes.length;
      return bytes;
    } catch (error) {
      throw toReadError(error, this.#document.name);
    }
  }

  /** As `read`, for the checksums of a frame, of which the last ones are remembered: a key is never overwritten. */
  async readTable(place: RemotePlace, start: number, end: number): Promise<Buffer> {
    const name = `${place.bucket}/${place.key} ${start} ${end}`;
    const known = this.#tables.get(name);
    if (known !== undefined) return known;
    const table = await this.read(place, start, end);
    if (this.#tables.size >= TABLES_MAX) this.#tables.delete(this.#tables.keys().next().value!);
    this.#tables.set(name, table);
    return table;
  }

  /** Forgets the checksums of frames: some of them may be wrong. */
  dropTables(): void {
    this.#tables.clear();
  }

  /** Deletes a key; one that does not exist counts as deleted. */
  async delete({ bucket, key }: RemoteKey, signal: AbortSignal): Promise<void> {
    await this.client(bucket).delete(key, { signal });
  }

  /** Waits for the budget of background work; reads that clients wait for do not use it. */
  async #pace(bytes: number, signal: AbortSignal): Promise<void> {
    const { rate_bytes: rate } = this.#document;
    if (rate === 0) return;
    const { clock } = this.#environment;
    const nowMs = clock.monotonicMs();
    const waitMs = this.#freeAtMs - nowMs;
    this.#freeAtMs = Math.max(this.#freeAtMs, nowMs) + (bytes / rate) * 1_000;
    if (waitMs > 0) await sleep(waitMs, undefined, { signal });
  }

  /** As reads of clients, with the budget of background work. */
  async readPaced(
    place: RemotePlace,
    start: number,
    end: number,
    signal: AbortSignal,
  ): Promise<Buffer> {
    await this.#pace(end - start, signal);
    return this.read(place, start, end);
  }
}

/** Answers that show that the remote works. */
const HEALTHY: ReadonlySet<string> = new Set([
  "ok",
  "not_found",
  "no_such_upload",
  "precondition_failed",
  "range_not_satisfiable",
]);

function omitSecret(document: RemoteDocument): RemoteSettings {
  const { sealed: _, ...settings } = document;
  return settings;
}

/** The name under which the secret key of a remote is sealed. */
export function nameSecret(remote: string): string {
  return `remote ${remote}`;
}

function wrongObject(what: string): S3ClientError {
  return new S3ClientError("checksum_mismatch", `after an upload, ${what}`, { operation: "head" });
}
