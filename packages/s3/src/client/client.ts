// A client of one bucket: puts, ranged reads, listings, deletions and multipart uploads, with retries.
import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { OutgoingAnswer } from "@platform/http1";
import type { EgressGuard } from "@platform/kernel/egress";
import { systemClock, type Clock } from "@platform/kernel/time";
import { encodeUri, type SignedHead, signRequest } from "../signature/index.ts";
import { malformed, readExactly, readText } from "./answer-body.ts";
import { findText, parseAnswer, type AnswerElement } from "./answer-document.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import {
  classifyAnswer,
  S3ClientError,
  type S3ClientErrorCode,
  type S3Operation,
} from "./error.ts";
import { S3Stream } from "./stream.ts";
import { Transport } from "./transport.ts";

const ERROR_BYTES_MAX = 64 * 1024;
const BUCKET_DOCUMENT_BYTES_MAX = 1024 * 1024;
/** A page of 1 000 keys of 1 KiB in escaped form. */
const PAGE_BYTES_MAX = 8 * 1024 * 1024;
/** Bodies from this size on are hashed on a thread of the pool. */
const ASIDE_BYTES_MIN = 64 * 1024;
const EMPTY = new Uint8Array(0);
const STALL_MS = 15_000;
const BACKOFF_MS = 200;
const BACKOFF_MS_MAX = 10_000;
const RETRY_AFTER_MS_MAX = 30_000;
/** `MaxKeys` of S3. */
const KEYS_MAX = 1_000;

/** Credentials of the store. */
export interface S3Credentials {
  accessKey: string;
  secretKey: string;
  sessionToken?: string | undefined;
}

/** The end of one attempt, for metrics. */
export interface S3Attempt {
  operation: S3Operation;
  code: "ok" | S3ClientErrorCode;
  /** The store's own code. */
  serverCode: string | undefined;
  durationMs: number;
}

/** Options of an `S3Client`. */
export interface S3ClientOptions {
  /** `http://` or `https://`, host and optional port. */
  endpoint: URL;
  region: string;
  bucket: string;
  /** False puts the bucket into the host name (`https://bucket.host/key`). True by default. */
  isPathStyle?: boolean;
  /** Added to every request, and signed; names in lower case. */
  headers?: Readonly<Record<string, string>>;
  /** Read for each request, so that rotated credentials count at once. */
  credentials: () => S3Credentials;
  /** For endpoints that users supply. */
  guard?: EgressGuard | undefined;
  /** Trusted certificate authorities in PEM; default: those of Node. */
  ca?: readonly string[] | undefined;
  /** Connections to the store. 16. */
  socketsMax?: number;
  /** Requests in flight, those that wait for a connection included; further ones are `busy`. 128. */
  requestsMax?: number;
  /** Attempts of a request. 4. */
  attemptsMax?: number;
  /** Longest silence of the store within an attempt. 15 000. */
  stallMs?: number;
  /** Longest time of an attempt. 120 000. */
  attemptMs?: number;
  clock?: Clock;
  /** Called after each attempt. Must not throw. */
  onAttempt?: (attempt: S3Attempt) => void;
}

/** Settings of a single request, which may differ from those of the client. */
export interface S3RequestOptions {
  signal?: AbortSignal | undefined;
  /** Attempts of this request. */
  attemptsMax?: number | undefined;
  /** It is not even sent again over another connection if a kept one breaks: it might have an effect twice. */
  isOnce?: boolean | undefined;
}

/** Settings of the request for one part, whose hash may be made while another part is sent. */
export interface S3PartOptions extends S3RequestOptions {
  /** The result of {@link hashBody} for the part, if it was hashed before. */
  payloadHash?: string | undefined;
}

/** An additional checksum of a whole object, as S3 names it; the value is base64. */
export interface S3Checksum {
  algorithm: "CRC32C" | "CRC64NVME" | "SHA256";
  value: string;
}

/** Options of a put and of the completion of an upload. */
export interface S3PutOptions extends S3RequestOptions {
  /** Attributes of the object, names in lower case. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Refuses to replace an object: `precondition_failed`, which a repeated request may meet after a lost answer. */
  isNew?: boolean | undefined;
  /** The store compares it with what it has received, and keeps it, if it supports that. */
  checksum?: S3Checksum | undefined;
}

/** The version that a put has made; `undefined` from stores and buckets without versions. */
export interface S3Written {
  versionId: string | undefined;
}

/** A request that this client has no method for. */
export interface S3Call {
  operation: S3Operation;
  method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** Absent for the bucket. */
  key?: string;
  query?: readonly (readonly [name: string, value: string])[];
  /** Names in lower case. */
  headers?: Readonly<Record<string, string>>;
  /** A stream is read once: such a request has one attempt. */
  body?: Uint8Array | S3Stream;
  /**
   * Memory for an answer's body of `length` bytes, errors included, which `readAll` of its answer then returns; null if there is
   * none.
   */
  findMemory?: (length: number) => Buffer | null;
  /** Called with the number of bytes of each piece of the answer's body; a promise lets the next one wait. */
  pace?: S3Pace | undefined;
}

/** Bounds the rate of receiving: see `pace` of {@link S3Call}. Its promises must not reject. */
export type S3Pace = (bytes: number) => Promise<void> | undefined;

/** A short answer to an {@link S3Call}. */
export interface S3Reply {
  status: number;
  headers: Readonly<Record<string, string>>;
  text: string;
}

/** An answer whose body is being received. Whoever has it closes it. */
export interface S3OpenAnswer {
  status: number;
  headers: Readonly<Record<string, string>>;
  /** The body. Rejects if the store is silent while it is awaited, or ends early. */
  chunks(): AsyncGenerator<Buffer, void, undefined>;
  /** The whole body, of at most `bytesMax` bytes; in place of `chunks`, and faster. Rejects as that does. */
  readAll(bytesMax: number): Promise<Buffer>;
  close(): void;
}

/** An object's size in bytes and its entity tag. */
export interface S3ObjectHead {
  bytes: number;
  etag: string | undefined;
  versionId: string | undefined;
  /** User metadata, names in lower case. */
  metadata: Readonly<Record<string, string>>;
  /** Checksums of the whole object that the store returns; only if they were requested. */
  checksums: readonly S3Checksum[];
}

/** An object in a listing. */
export interface S3ListedObject {
  key: string;
  bytes: number;
  /** Time of the last change, in epoch milliseconds. */
  modifiedMs: number;
}

/** A page of a listing; `next` continues it. */
export interface S3Page {
  objects: S3ListedObject[];
  next: string | undefined;
}

interface Call extends S3Call {
  options: S3RequestOptions;
  /** Its answer is passed on, with any status. */
  isOpen?: true;
  /** Hex; the body is hashed without it. */
  payloadHash?: string | undefined;
}

/** Consumes an answer; `explain` gives the meaning of errors that its body is read with. */
type ReadAnswer<Result> = (
  answer: OutgoingAnswer,
  explain: (error: unknown) => unknown,
) => Promise<Result>;

const MISSING_OBJECT: ReadonlySet<string> = new Set(["NoSuchKey", "NoSuchVersion"]);
const CHECKSUMS = ["CRC32C", "CRC64NVME", "SHA256"] as const;

/** Connections to a store and what is known about its health; the clients of several buckets share them. */
interface Connection {
  transport: Transport;
  breaker: CircuitBreaker;
  closing: AbortController;
}

/** See the file's title. All methods reject with an `S3ClientError`. */
export class S3Client {
  readonly #options: S3ClientOptions;
  readonly #clock: Clock;
  readonly #connection: Connection;
  readonly #transport: Transport;
  readonly #breaker: CircuitBreaker;
  readonly #closing: AbortController;
  #inFlight = 0;

  /** Throws a TypeError for an endpoint with a path, a query or credentials. */
  constructor(options: S3ClientOptions, connection?: Connection) {
    // That of the connection was checked.
    if (connection === undefined) checkEndpoint(options.endpoint);
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#connection = connection ?? this.#connect(options);
    this.#transport = this.#connection.transport;
    this.#breaker = this.#connection.breaker;
    this.#closing = this.#connection.closing;
  }

  /** A client of another bucket, over the same connections and with the same circuit breaker. `close` closes both. */
  forBucket(bucket: string): S3Client {
    return new S3Client({ ...this.#options, bucket }, this.#connection);
  }

  /** True while repeated failures keep requests from being sent. */
  get isOpen(): boolean {
    return this.#breaker.isOpen;
  }

  #connect(options: S3ClientOptions): Connection {
    const transport = new Transport({
      endpoint: options.endpoint,
      guard: options.guard,
      ca: options.ca,
      socketsMax: options.socketsMax ?? 16,
      stallMs: options.stallMs ?? STALL_MS,
      attemptMs: options.attemptMs ?? 120_000,
    });
    return { transport, breaker: new CircuitBreaker(this.#clock), closing: new AbortController() };
  }

  /** Stores an object; the store verifies the SHA-256 of what it receives. */
  async put(
    key: string,
    body: Uint8Array | S3Stream,
    options: S3PutOptions = {},
  ): Promise<S3Written> {
    const headers = toPutHeaders(options);
    const call: Call = { operation: "put", method: "PUT", key, headers, body, options };
    return this.#send(call, (answer) => readWritten(answer, "put"));
  }

  /** Sends a request and returns its answer, of at most 1 MiB. */
  request(call: S3Call, options: S3RequestOptions = {}): Promise<S3Reply> {
    return this.#send({ ...call, options }, async (answer) => {
      const text = await readText(answer, call.operation, BUCKET_DOCUMENT_BYTES_MAX);
      return { status: answer.status, headers: answer.headers, text };
    });
  }

  /**
   * Sends a request in one attempt, and returns its answer whatever its status is, errors included, as soon as its head has come.
   */
  async open(call: S3Call, options: S3RequestOptions = {}): Promise<S3OpenAnswer> {
    const opened = Promise.withResolvers<S3OpenAnswer>();
    const closed = Promise.withResolvers<void>();
    const over = this.#send({ ...call, options, isOpen: true }, async (answer, explain) => {
      opened.resolve(openAnswer(answer, explain, closed.resolve));
      await closed.promise;
    });
    over.catch(opened.reject);
    return opened.promise;
  }

  /** Reads the bytes from `start` to below `end`. An object that ends before `end` is `range_not_satisfiable`. */
  async getRange(
    key: string,
    start: number,
    end: number,
    options: S3RequestOptions = {},
  ): Promise<Buffer> {
    // Long-lived pieces must not keep a slab of other buffers.
    const bytes = Buffer.allocUnsafeSlow(end - start);
    await this.readRange(key, start, bytes, options);
    return bytes;
  }

  /** As `getRange`, into memory of the caller, whose content is undefined after a failure. */
  readRange(
    key: string,
    start: number,
    target: Buffer,
    { pace, ...options }: S3RequestOptions & { pace?: S3Pace | undefined } = {},
  ): Promise<void> {
    const headers = { range: `bytes=${start}-${start + target.length - 1}` };
    const findMemory = (length: number): Buffer | null =>
      length === target.length ? target : null;
    return this.#send(
      { operation: "get", method: "GET", key, headers, options, findMemory, pace },
      (answer) => readRange(answer, start, target),
    );
  }

  /**
   * Size and tag of an object; `undefined` only if the store says that this object does not exist in an existing bucket.
   */
  async head(
    key: string,
    options: S3RequestOptions & { withChecksums?: boolean; versionId?: string } = {},
  ): Promise<S3ObjectHead | undefined> {
    const asked = options.withChecksums === true ? { "x-amz-checksum-mode": "ENABLED" } : {};
    const { versionId } = options;
    const query = versionId === undefined ? [] : [["versionId", versionId] as const];
    const call: Call = { operation: "head", method: "HEAD", key, query, headers: asked, options };
    try {
      return await this.#send(call, readHead);
    } catch (error) {
      if (!isCode(error, "not_found")) throw error;
    }
    // An answer to HEAD has no body, so it cannot tell a missing object from a missing bucket.
    const headers = { range: "bytes=0-0" };
    try {
      return await this.#send(
        { operation: "head", method: "GET", key, query, headers, options },
        readHeadOfRange,
      );
    } catch (error) {
      const { code, serverCode = "" } = error as S3ClientError;
      if (code === "not_found" && MISSING_OBJECT.has(serverCode)) return undefined;
      throw error;
    }
  }

  /** Deletes an object; one that does not exist counts as deleted. */
  async delete(key: string, options: S3RequestOptions = {}): Promise<void> {
    try {
      await this.#send({ operation: "delete", method: "DELETE", key, options }, (answer) =>
        readEmpty(answer, "delete"),
      );
    } catch (error) {
      const isGone =
        isCode(error, "not_found") && (error as S3ClientError).serverCode !== undefined;
      if (!isGone) throw error;
    }
  }

  /** A page of the objects whose keys begin with `prefix`, in the order of the keys. */
  list(
    prefix: string,
    options: S3RequestOptions & { token?: string | undefined; keysMax?: number } = {},
  ): Promise<S3Page> {
    const query: [string, string][] = [
      ["list-type", "2"],
      ["encoding-type", "url"],
      ["max-keys", String(options.keysMax ?? KEYS_MAX)],
      ["prefix", prefix],
    ];
    if (options.token !== undefined) query.push(["continuation-token", options.token]);
    return this.#send({ operation: "list", method: "GET", query, options }, async (answer) =>
      readPage(await readDocument(answer, "list", "ListBucketResult"), prefix),
    );
  }

  /** All objects whose keys begin with `prefix`, page by page. */
  async *listAll(
    prefix: string,
    options: S3RequestOptions = {},
  ): AsyncGenerator<S3ListedObject, void> {
    let token: string | undefined;
    do {
      const page: S3Page = await this.list(prefix, { ...options, token });
      yield* page.objects;
      if (page.next !== undefined && page.next === token) {
        throw malformed("list", "a page continues with itself");
      }
      token = page.next;
    } while (token !== undefined);
  }

  /** A document about the bucket, such as `notification`: JSON from stores that have it, XML from others. */
  readBucketDocument(name: string, options: S3RequestOptions = {}): Promise<string> {
    const query = [[name, ""]] as const;
    const headers = { accept: "application/json" };
    return this.#send({ operation: "describe", method: "GET", query, headers, options }, (answer) =>
      readText(answer, "describe", BUCKET_DOCUMENT_BYTES_MAX),
    );
  }

  /** Starts a multipart upload and returns its id. With an algorithm, its completion may have a checksum of the whole. */
  createUpload(
    key: string,
    options: S3RequestOptions & {
      algorithm?: S3Checksum["algorithm"] | undefined;
      headers?: Readonly<Record<string, string>>;
    } = {},
  ): Promise<string> {
    const query = [["uploads", ""]] as const;
    const { algorithm } = options;
    const whole: Record<string, string> =
      algorithm === undefined
        ? {}
        : { "x-amz-checksum-algorithm": algorithm, "x-amz-checksum-type": "FULL_OBJECT" };
    const headers = { ...options.headers, ...whole };
    const call: Call = { operation: "create_upload", method: "POST", key, query, headers, options };
    return this.#send(call, async (answer) => {
      const root = await readDocument(answer, "create_upload", "InitiateMultipartUploadResult");
      const id = findText(root, "UploadId");
      if (id === undefined || id === "") throw malformed("create_upload", "it has no UploadId");
      return id;
    });
  }

  /** Stores a part and returns its entity tag. Parts but the last have at least 5 MiB. */
  uploadPart(
    key: string,
    uploadId: string,
    number: number,
    body: Uint8Array | S3Stream,
    options: S3PartOptions = {},
  ): Promise<string> {
    const query = [
      ["partNumber", String(number)],
      ["uploadId", uploadId],
    ] as const;
    const { payloadHash } = options;
    const head = { operation: "upload_part", method: "PUT", key, query } as const;
    return this.#send({ ...head, body, payloadHash, options }, async (answer) => {
      await readEmpty(answer, "upload_part");
      const { etag } = answer.headers;
      if (etag === undefined || etag === "") throw malformed("upload_part", "it has no ETag");
      return etag;
    });
  }

  /** Completes an upload of parts with these tags; without numbers they are 1, 2, 3 and so on. */
  async completeUpload(
    key: string,
    uploadId: string,
    etags: readonly string[],
    options: S3PutOptions = {},
    numbers: readonly number[] = etags.map((_, index) => index + 1),
  ): Promise<S3Written> {
    const parts = etags.map(
      (etag, index) =>
        `<Part><PartNumber>${numbers[index]}</PartNumber><ETag>${escapeXml(etag)}</ETag></Part>`,
    );
    const body = Buffer.from(
      `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${parts.join("")}</CompleteMultipartUpload>`,
    );
    const query = [["uploadId", uploadId]] as const;
    const type = options.checksum === undefined ? {} : { "x-amz-checksum-type": "FULL_OBJECT" };
    const headers = { "content-type": "application/xml", ...type, ...toPutHeaders(options) };
    return this.#send(
      { operation: "complete_upload", method: "POST", key, query, headers, body, options },
      async (answer) => {
        await readDocument(answer, "complete_upload", "CompleteMultipartUploadResult");
        return { versionId: readVersionId(answer) };
      },
    );
  }

  /** Discards an upload; one that does not exist counts as discarded. */
  async abortUpload(key: string, uploadId: string, options: S3RequestOptions = {}): Promise<void> {
    const query = [["uploadId", uploadId]] as const;
    try {
      await this.#send(
        { operation: "abort_upload", method: "DELETE", key, query, options },
        (answer) => readEmpty(answer, "abort_upload"),
      );
    } catch (error) {
      if (!isCode(error, "no_such_upload")) throw error;
    }
  }

  /** Ids of the unfinished uploads of exactly this key, at most a thousand. */
  listUploads(key: string, options: S3RequestOptions = {}): Promise<string[]> {
    const query = [
      ["uploads", ""],
      ["prefix", key],
    ] as const;
    return this.#send(
      { operation: "list_uploads", method: "GET", query, options },
      async (answer) => {
        const root = await readDocument(answer, "list_uploads", "ListMultipartUploadsResult");
        return root.children.flatMap((child) => {
          if (child.name !== "Upload" || findText(child, "Key") !== key) return [];
          return [findText(child, "UploadId") ?? ""];
        });
      },
    );
  }

  /** Aborts all requests and closes the connections. */
  close(): void {
    this.#closing.abort();
    this.#transport.close();
  }

  async #send<Result>(call: Call, read: ReadAnswer<Result>): Promise<Result> {
    const { operation, options } = call;
    const { requestsMax = 128, attemptsMax = 4 } = this.#options;
    if (this.#inFlight >= requestsMax) {
      throw new S3ClientError("busy", `${requestsMax} requests are in flight`, { operation });
    }
    const signals = [this.#closing.signal, ...(options.signal ? [options.signal] : [])];
    this.#inFlight += 1;
    try {
      const payloadHash = call.payloadHash ?? (await hashBody(call.body ?? EMPTY));
      const isOnce = call.isOpen === true || call.body instanceof S3Stream;
      const last = isOnce ? 1 : (options.attemptsMax ?? attemptsMax);
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await this.#attempt(call, payloadHash, signals, read);
        } catch (error) {
          if (!(error instanceof S3ClientError) || !error.isTransient || attempt >= last)
            throw error;
          await this.#pause(operation, attempt, error.retryAfterMs ?? 0, signals);
        }
      }
    } finally {
      this.#inFlight -= 1;
    }
  }

  // Full jitter: clients of a store that comes back do not return all at once.
  async #pause(
    operation: S3Operation,
    attempt: number,
    retryAfterMs: number,
    signals: readonly AbortSignal[],
  ): Promise<void> {
    const backoffMs = Math.random() * Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** attempt);
    try {
      await sleep(Math.max(backoffMs, Math.min(retryAfterMs, RETRY_AFTER_MS_MAX)), undefined, {
        signal: AbortSignal.any([...signals]),
      });
    } catch (cause) {
      throw new S3ClientError("aborted", "aborted", { operation, cause });
    }
  }

  async #attempt<Result>(
    call: Call,
    payloadHash: string,
    signals: readonly AbortSignal[],
    read: ReadAnswer<Result>,
  ): Promise<Result> {
    const { operation, method, body } = call;
    const waitMs = this.#breaker.admit();
    if (waitMs > 0) {
      const text = `the store has failed repeatedly; the next trial is in ${Math.ceil(waitMs)} ms`;
      throw new S3ClientError("circuit_open", text, { operation, retryAfterMs: waitMs });
    }
    const started = this.#clock.monotonicMs();
    let failure: S3ClientError | undefined;
    let isSettled = false;
    // The body of an open answer may take any time, in which the circuit must not wait for it.
    const settle = (isHealthy: boolean | undefined): void => {
      if (!isSettled) this.#breaker.settle(isHealthy);
      isSettled = true;
    };
    try {
      const target = this.#targetOf(call);
      const { headers, ...head } = this.#sign(call, target, payloadHash);
      const sent = body instanceof S3Stream ? body.encode(head) : body;
      const isOpen = call.isOpen === true;
      return await this.#transport.send(
        {
          operation,
          method,
          hostname: this.#hostname,
          target,
          headers,
          body: sent,
          signals,
          isOpen,
          findMemory: call.findMemory,
          pace: call.pace,
          isOnce: call.options.isOnce === true,
        },
        async (answer, explain) => {
          if (isOpen) settle(answer.status < 500);
          else await refuseFailure(answer, operation);
          return read(answer, explain);
        },
      );
    } catch (error) {
      failure = error as S3ClientError;
      throw error;
    } finally {
      const isNeutral = failure?.code === "aborted" || failure?.code === "address_not_allowed";
      settle(isNeutral ? undefined : failure?.isOutage !== true);
      this.#options.onAttempt?.({
        operation,
        code: failure?.code ?? "ok",
        serverCode: failure?.serverCode,
        durationMs: this.#clock.monotonicMs() - started,
      });
    }
  }

  get #hostname(): string {
    const { endpoint, bucket, isPathStyle = true } = this.#options;
    return isPathStyle ? endpoint.hostname : `${bucket}.${endpoint.hostname}`;
  }

  #targetOf({ key, query = [] }: Call): string {
    const { bucket, isPathStyle = true } = this.#options;
    const root = isPathStyle ? `/${encodeUri(bucket)}` : "";
    const path = key === undefined ? root || "/" : `${root}/${encodeUri(key, true)}`;
    const pairs = query.map(([name, value]) => `${encodeUri(name)}=${encodeUri(value)}`);
    return pairs.length === 0 ? path : `${path}?${pairs.join("&")}`;
  }

  #sign(call: Call, target: string, payloadHash: string): SignedHead {
    const { endpoint, region } = this.#options;
    const { accessKey, secretKey, sessionToken } = this.#options.credentials();
    const port = endpoint.port === "" ? "" : `:${endpoint.port}`;
    const host = `${this.#hostname}${port}`;
    const headers: Record<string, string> = { ...this.#options.headers, ...call.headers, host };
    if (sessionToken !== undefined) headers["x-amz-security-token"] = sessionToken;
    if (call.body instanceof S3Stream) call.body.describe(headers);
    const signed = signRequest(
      { accessKey, secret: secretKey, region },
      { method: call.method, target, headers, payloadHash, timeMs: this.#clock.now() },
    );
    signed.headers["accept-encoding"] = "identity";
    const { body } = call;
    if (body instanceof S3Stream) signed.headers["content-length"] = String(body.encodedLength);
    else if (body !== undefined) signed.headers["content-length"] = String(body.length);
    else if (call.method === "POST" || call.method === "PUT")
      signed.headers["content-length"] = "0";
    return signed;
  }
}

function toPutHeaders({ isNew, checksum, headers }: S3PutOptions): Record<string, string> {
  return {
    ...headers,
    ...(isNew === true ? { "if-none-match": "*" } : {}),
    ...(checksum === undefined
      ? {}
      : { [`x-amz-checksum-${checksum.algorithm.toLowerCase()}`]: checksum.value }),
  };
}

/** Throws a TypeError for an endpoint that the client cannot use. */
export function checkEndpoint({
  protocol,
  username,
  password,
  pathname,
  search,
  hash: fragment,
}: URL): void {
  const isPlain =
    (protocol === "http:" || protocol === "https:") &&
    `${username}${password}${search}${fragment}` === "" &&
    pathname === "/";
  if (isPlain) return;
  throw new TypeError("an endpoint is http:// or https://, a host and an optional port");
}

function isCode(error: unknown, code: S3ClientErrorCode): boolean {
  return error instanceof S3ClientError && error.code === code;
}

/** The payload hash of a body, in hex. SHA-256 of a large one takes milliseconds: not on this thread. */
export async function hashBody(body: Uint8Array | S3Stream): Promise<string> {
  if (body instanceof S3Stream) return body.payloadHash;
  if (body.length < ASIDE_BYTES_MIN) return hash("sha256", body, "hex");
  const digest = await crypto.subtle.digest("SHA-256", body as Uint8Array<ArrayBuffer>);
  return Buffer.from(digest).toString("hex");
}

async function refuseFailure(answer: OutgoingAnswer, operation: S3Operation): Promise<void> {
  const { status, headers } = answer;
  if (status >= 200 && status < 300) return;
  const text = await readText(answer, operation, ERROR_BYTES_MAX).catch(() => "");
  throw failureOf(operation, status, headers, parseAnswer(text));
}

function failureOf(
  operation: S3Operation,
  status: number,
  headers: Readonly<Record<string, string>>,
  document: AnswerElement | undefined,
): S3ClientError {
  const found = document?.name === "Error" ? findText(document, "Code") : undefined;
  // Codes become labels and parts of answers, so they must look like codes.
  const serverCode = found !== undefined && /^[A-Za-z0-9.]{1,64}$/.test(found) ? found : undefined;
  const code = classifyAnswer(status, serverCode);
  const seconds = Number(headers["retry-after"] ?? Number.NaN);
  const retryAfterMs = seconds >= 0 && seconds < 86_400 ? seconds * 1_000 : undefined;
  const region = headers["x-amz-bucket-region"];
  const hint = typeof region === "string" && /^[a-z0-9-]{1,32}$/.test(region) ? ` (${region})` : "";
  const text = `the store answered ${status}${serverCode === undefined ? "" : ` ${serverCode}`}${hint}`;
  return new S3ClientError(code, text, { operation, status, serverCode, retryAfterMs });
}

async function readDocument(
  answer: OutgoingAnswer,
  operation: S3Operation,
  name: string,
): Promise<AnswerElement> {
  const root = parseAnswer(await readText(answer, operation, PAGE_BYTES_MAX));
  const { status, headers } = answer;
  if (root?.name === "Error") throw failureOf(operation, status, headers, root);
  if (root?.name === name) return root;
  throw malformed(operation, `not a ${name}`, status);
}

// Success has no body; some servers and proxies send an error with status 200.
async function readEmpty(answer: OutgoingAnswer, operation: S3Operation): Promise<void> {
  const text = await readText(answer, operation, ERROR_BYTES_MAX);
  if (text.trim() === "") return;
  const { status, headers } = answer;
  const root = parseAnswer(text);
  if (root?.name === "Error") throw failureOf(operation, status, headers, root);
  throw malformed(operation, "a document where none belongs", status);
}

async function readWritten(answer: OutgoingAnswer, operation: S3Operation): Promise<S3Written> {
  await readEmpty(answer, operation);
  return { versionId: readVersionId(answer) };
}

// "null" is the version of buckets without versions.
function readVersionId({ headers }: OutgoingAnswer): string | undefined {
  const found = headers["x-amz-version-id"];
  return typeof found === "string" && found !== "null" ? found : undefined;
}

const METADATA = "x-amz-meta-";

function readMetadata({ headers }: OutgoingAnswer): Record<string, string> {
  const found = Object.entries(headers).flatMap(([name, value]) =>
    name.startsWith(METADATA) && typeof value === "string"
      ? [[name.slice(METADATA.length), value] as const]
      : [],
  );
  return Object.fromEntries(found);
}

function openAnswer(
  answer: OutgoingAnswer,
  explain: (error: unknown) => unknown,
  onClosed: () => void,
): S3OpenAnswer {
  async function* chunks(): AsyncGenerator<Buffer, void, undefined> {
    try {
      yield* answer.chunks();
    } catch (error) {
      throw explain(error);
    } finally {
      onClosed();
    }
  }
  const readAll = async (bytesMax: number): Promise<Buffer> => {
    try {
      return await answer.readAll(bytesMax);
    } catch (error) {
      throw explain(error);
    } finally {
      onClosed();
    }
  };
  const { headers, status } = answer;
  return { status, headers, chunks, readAll, close: onClosed };
}

async function readRange(answer: OutgoingAnswer, start: number, target: Buffer): Promise<void> {
  const end = start + target.length;
  const range = parseContentRange(answer.headers["content-range"]);
  if (answer.status !== 206 || range === undefined) {
    // Fails as an error that came with a success status, if it is one.
    await readEmpty(answer, "get");
    throw malformed("get", "it ignores the range", answer.status);
  }
  if (range.start !== start) throw malformed("get", "it is of another range", 206);
  if (range.end !== end) {
    if (range.end === range.total && range.end < end) {
      const text = `the object has ${range.total} bytes, not ${end}`;
      throw new S3ClientError("range_not_satisfiable", text, { operation: "get", status: 206 });
    }
    throw malformed("get", "it is of another range", 206);
  }
  await readExactly(answer, "get", target);
}

async function readHead(answer: OutgoingAnswer): Promise<S3ObjectHead> {
  await readText(answer, "head", 0);
  const length = answer.headers["content-length"];
  if (length === undefined || !/^\d{1,15}$/.test(length)) {
    throw malformed("head", "it has no Content-Length");
  }
  return {
    bytes: Number(length),
    etag: answer.headers.etag,
    versionId: readVersionId(answer),
    metadata: readMetadata(answer),
    checksums: readChecksums(answer),
  };
}

// Composite checksums are those of the parts' checksums, and say nothing that a client without the parts could compare.
function readChecksums({ headers }: OutgoingAnswer): S3Checksum[] {
  if (headers["x-amz-checksum-type"] === "COMPOSITE") return [];
  return CHECKSUMS.flatMap((algorithm) => {
    const value = headers[`x-amz-checksum-${algorithm.toLowerCase()}`];
    return typeof value === "string" && !value.includes("-") ? [{ algorithm, value }] : [];
  });
}

async function readHeadOfRange(answer: OutgoingAnswer): Promise<S3ObjectHead> {
  const range = parseContentRange(answer.headers["content-range"]);
  if (range?.start !== 0 || range.end !== 1) {
    throw malformed("head", "it ignores the range", answer.status);
  }
  await readExactly(answer, "head", Buffer.alloc(1));
  const { etag } = answer.headers;
  const described = { versionId: readVersionId(answer), metadata: readMetadata(answer) };
  return { bytes: range.total, etag, ...described, checksums: [] };
}

function parseContentRange(
  text: string | undefined,
): { start: number; end: number; total: number } | undefined {
  const match = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(text ?? "");
  if (match === null) return undefined;
  const [start, last, total] = match.slice(1).map(Number) as [number, number, number];
  return start <= last && last < total ? { start, end: last + 1, total } : undefined;
}

function readPage(root: AnswerElement, prefix: string): S3Page {
  const isEncoded = findText(root, "EncodingType") === "url";
  const objects = root.children
    .filter(({ name }) => name === "Contents")
    .map((child): S3ListedObject => {
      const written = findText(child, "Key") ?? "";
      const bytes = Number(findText(child, "Size") ?? Number.NaN);
      const key = isEncoded ? decodeKey(written) : written;
      if (!Number.isSafeInteger(bytes) || bytes < 0) throw malformed("list", "a size is missing");
      if (!key.startsWith(prefix)) throw malformed("list", "a key outside of the prefix");
      const modifiedMs = Date.parse(findText(child, "LastModified") ?? "");
      if (Number.isNaN(modifiedMs)) throw malformed("list", "a time is missing");
      return { key, bytes, modifiedMs };
    });
  const isTruncated = findText(root, "IsTruncated") === "true";
  const next = isTruncated ? findText(root, "NextContinuationToken") : undefined;
  if (isTruncated && (next === undefined || next === "")) {
    throw malformed("list", "a page is truncated without a token");
  }
  return { objects, next };
}

function decodeKey(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw malformed("list", "a key is not encoded");
  }
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
