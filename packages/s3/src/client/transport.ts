// One HTTP request to the store, over connections that are kept.
import {
  createEngine,
  createUpstreamPool,
  OutgoingError,
  sendRequest,
  type Engine,
  type OutgoingAnswer,
  type OutgoingCall,
  type OutgoingRequest,
  type UpstreamPool,
} from "@platform/http1";
import { EgressError, type EgressGuard } from "@platform/kernel/egress";
import { S3ClientError, type S3Operation } from "./error.ts";

/** Longest time of a body that is sent while it is read; its stalls end it sooner. */
const STREAM_MS_MAX = 86_400_000;
/** Hosts with connections: buckets may be in the host's name. */
const HOSTS_MAX = 64;
/** A host's connections end so long after it has been forgotten, unless their requests end sooner. */
const FORGOTTEN_MS = 120_000;

/** Options of a `Transport`. */
export interface TransportOptions {
  endpoint: URL;
  guard: EgressGuard | undefined;
  ca: readonly string[] | undefined;
  socketsMax: number;
  /** Longest silence of the store within a request. */
  stallMs: number;
  /** Longest time of one request, its answer included. */
  attemptMs: number;
}

/** A request without its signature. */
export interface TransportRequest {
  operation: S3Operation;
  method: string;
  /** Host of the endpoint, with the bucket in front of it unless that is in the path. */
  hostname: string;
  /** Path and query. */
  target: string;
  headers: Readonly<Record<string, string>>;
  /** A stream is sent over a connection of its own, since it cannot be sent again over another. */
  body: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  /** Any of them ends the request. */
  signals: readonly AbortSignal[];
  /** The answer may take any time once its head has come. */
  isOpen: boolean;
  /** Not sent again if a kept connection breaks. */
  isOnce: boolean;
  /** As that of an `OutgoingRequest`. */
  findMemory: OutgoingRequest["findMemory"];
  pace: OutgoingRequest["pace"];
}

/** Sends requests; rejects with an S3ClientError. */
export class Transport {
  readonly #options: TransportOptions;
  readonly #engine: Engine;
  /** By host, the one used last at the end. */
  readonly #pools = new Map<string, UpstreamPool>();

  constructor(options: TransportOptions) {
    this.#options = options;
    // Silence is noticed late by two intervals at most.
    this.#engine = createEngine({ intervalMs: Math.min(1_000, options.stallMs / 8) });
  }

  /**
   * Sends a request and lets `read` consume the answer. A connection that the store closed while it was idle is replaced
   * once, since nothing was processed.
   */
  async send<Result>(
    request: TransportRequest,
    read: (answer: OutgoingAnswer, explain: (error: unknown) => unknown) => Promise<Result>,
  ): Promise<Result> {
    const attempt = new Attempt(this.#options, request);
    try {
      for (let isRetry = false; ; isRetry = true) {
        const call = this.#open(request, isRetry);
        attempt.use(call);
        try {
          const answer = await call.answer;
          if (request.isOpen) attempt.endLimit();
          return await read(answer, (error) => attempt.explain(error));
        } catch (error) {
          const isLast = isRetry || request.isOnce || attempt.isOver;
          if (isLast || !call.isStale) throw error;
        } finally {
          call.destroy();
        }
      }
    } catch (error) {
      throw attempt.explain(error);
    } finally {
      attempt.end();
    }
  }

  /** Closes all connections. */
  close(): void {
    for (const pool of this.#pools.values()) pool.close();
    this.#pools.clear();
    this.#engine.close();
  }

  #open(
    { method, hostname, target, headers, body, findMemory, pace }: TransportRequest,
    isRetry: boolean,
  ): OutgoingCall {
    const { guard, stallMs } = this.#options;
    guard?.checkHost(hostname);
    return sendRequest(this.#engine, this.#poolOf(hostname), {
      method,
      target,
      headers,
      body,
      mayReuse: !isRetry,
      stallMs,
      findMemory,
      pace,
    });
  }

  #poolOf(hostname: string): UpstreamPool {
    const known = this.#pools.get(hostname);
    if (known !== undefined && this.#pools.size === 1) return known;
    this.#pools.delete(hostname);
    const pool = known ?? this.#createPool(hostname);
    this.#pools.set(hostname, pool);
    if (this.#pools.size > HOSTS_MAX) {
      const [oldest, forgotten] = this.#pools.entries().next().value!;
      this.#pools.delete(oldest);
      void forgotten.drain(FORGOTTEN_MS);
    }
    return pool;
  }

  #createPool(hostname: string): UpstreamPool {
    const { endpoint, guard, ca, socketsMax, stallMs } = this.#options;
    const isSecure = endpoint.protocol === "https:";
    const port = endpoint.port === "" ? (isSecure ? 443 : 80) : Number(endpoint.port);
    // Node wants IPv6 addresses without brackets.
    const host = hostname.replace(/^\[|\]$/g, "");
    return createUpstreamPool({
      engine: this.#engine,
      addresses: [{ host, port }],
      lookup: guard?.lookup,
      connectionsMax: socketsMax,
      idleMax: socketsMax,
      connectTimeoutMs: stallMs,
      // The time of the attempt counts.
      waitTimeoutMs: Infinity,
      ...(isSecure
        ? { tls: { serverName: host, ...(ca === undefined ? {} : { ca: ca.join("\n") }) } }
        : {}),
    });
  }
}

/** The time limit of a request and the meaning of its errors. */
class Attempt {
  readonly #options: TransportOptions;
  readonly #request: TransportRequest;
  readonly #timer: NodeJS.Timeout;
  #call: OutgoingCall | undefined;
  #isLate = false;

  constructor(options: TransportOptions, request: TransportRequest) {
    this.#options = options;
    this.#request = request;
    const limitMs = isStream(request.body) ? STREAM_MS_MAX : options.attemptMs;
    this.#timer = setTimeout(() => {
      this.#isLate = true;
      this.#call?.destroy();
    }, limitMs);
    // Signals that follow several others, and the one of a request, cost more than all else that it needs.
    for (const signal of request.signals) signal.addEventListener("abort", this.#cancel);
  }

  readonly #cancel = (): void => {
    this.#call?.destroy();
  };

  /** Limits this call from now on. */
  use(call: OutgoingCall): void {
    this.#call = call;
    if (this.isOver) call.destroy();
  }

  endLimit(): void {
    clearTimeout(this.#timer);
  }

  get isOver(): boolean {
    return this.#isLate || this.#isAborted;
  }

  get #isAborted(): boolean {
    return this.#request.signals.some(({ aborted }) => aborted);
  }

  explain(error: unknown): unknown {
    if (error instanceof S3ClientError) return error;
    const { operation } = this.#request;
    const { endpoint, attemptMs, stallMs } = this.#options;
    const cause = error instanceof OutgoingError ? (error.cause ?? error) : error;
    const details = { operation, cause };
    const { host } = endpoint;
    if (this.#isAborted) return new S3ClientError("aborted", "aborted", details);
    if (this.#isLate) {
      return new S3ClientError("timeout", `${host}: not done within ${attemptMs} ms`, details);
    }
    if (error instanceof EgressError && error.code === "address_not_allowed") {
      return new S3ClientError("address_not_allowed", error.message, details);
    }
    if (!(error instanceof OutgoingError)) {
      return new S3ClientError("unreachable", `${host}: no answer`, details);
    }
    const { kind, detail } = error;
    if (kind === "stalled" || kind === "connect-timeout") {
      return new S3ClientError("timeout", `${host}: silent for ${stallMs} ms`, details);
    }
    if (detail === "address_not_allowed") {
      return new S3ClientError(
        "address_not_allowed",
        `${host}: its address is not allowed`,
        details,
      );
    }
    if (kind === "truncated") {
      return new S3ClientError("truncated", "the answer ends early", details);
    }
    if (kind === "malformed-response") {
      return new S3ClientError("malformed_answer", `malformed answer: ${detail}`, details);
    }
    return new S3ClientError("unreachable", `${host}: no answer`, details);
  }

  end(): void {
    clearTimeout(this.#timer);
    for (const signal of this.#request.signals) signal.removeEventListener("abort", this.#cancel);
  }
}

function isStream(body: TransportRequest["body"]): body is AsyncIterable<Uint8Array> {
  return body !== undefined && Symbol.asyncIterator in body;
}
