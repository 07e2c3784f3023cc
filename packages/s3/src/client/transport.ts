// One HTTP request to the store, over connections that are kept.
import { Agent as HttpAgent, request as requestHttp, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { EgressError, type EgressGuard } from "@platform/kernel/egress";
import { S3ClientError, type S3Operation } from "./error.ts";

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
  body: Uint8Array | undefined;
  signal: AbortSignal | undefined;
}

/** Sends requests; rejects with an S3ClientError. */
export class Transport {
  readonly #options: TransportOptions;
  readonly #agent: HttpAgent | HttpsAgent;

  constructor(options: TransportOptions) {
    this.#options = options;
    const { endpoint, guard, ca, socketsMax } = options;
    const shared = {
      keepAlive: true,
      maxSockets: socketsMax,
      maxFreeSockets: socketsMax,
      ...(guard === undefined ? {} : { lookup: guard.lookup }),
    };
    this.#agent =
      endpoint.protocol === "https:"
        ? new HttpsAgent({ ...shared, ...(ca === undefined ? {} : { ca: [...ca] }) })
        : new HttpAgent(shared);
  }

  /**
   * Sends a request and lets `read` consume the answer. A connection that the store closed while it was idle is replaced
   * once, since nothing was processed.
   */
  async send<Result>(
    request: TransportRequest,
    read: (answer: IncomingMessage) => Promise<Result>,
  ): Promise<Result> {
    const attempt = new Attempt(this.#options, request);
    try {
      for (let isRetry = false; ; isRetry = true) {
        const sent = attempt.open(this.#agent);
        try {
          return await read(await sent.answer);
        } catch (error) {
          if (isRetry || !sent.isStale(error) || attempt.isOver) throw error;
        } finally {
          sent.release();
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
    this.#agent.destroy();
  }
}

interface Sent {
  answer: Promise<IncomingMessage>;
  /** True if the connection was a kept one and broke before an answer. */
  isStale: (error: unknown) => boolean;
  /** Closes the connection unless the answer has been read to its end. */
  release: () => void;
}

/** The time limits of a request and the meaning of its errors. */
class Attempt {
  readonly #options: TransportOptions;
  readonly #request: TransportRequest;
  readonly #deadline: AbortController;
  readonly #timer: NodeJS.Timeout;
  #isStalled = false;

  constructor(options: TransportOptions, request: TransportRequest) {
    this.#options = options;
    this.#request = request;
    this.#deadline = new AbortController();
    this.#timer = setTimeout(() => this.#deadline.abort(), options.attemptMs);
  }

  get isOver(): boolean {
    return this.#deadline.signal.aborted || this.#request.signal?.aborted === true;
  }

  open(agent: HttpAgent | HttpsAgent): Sent {
    const { endpoint, guard, stallMs } = this.#options;
    const { method, hostname, target, headers, body, signal } = this.#request;
    guard?.checkHost(hostname);
    const both = [this.#deadline.signal, ...(signal === undefined ? [] : [signal])];
    const send = endpoint.protocol === "https:" ? requestHttps : requestHttp;
    const outgoing = send({
      protocol: endpoint.protocol,
      // Node wants IPv6 addresses without brackets.
      hostname: hostname.replace(/^\[|\]$/g, ""),
      port: endpoint.port === "" ? undefined : Number(endpoint.port),
      method,
      path: target,
      headers,
      agent,
      timeout: stallMs,
      signal: AbortSignal.any(both),
    });
    outgoing.on("timeout", () => {
      this.#isStalled = true;
      outgoing.destroy(new Error("the store is silent"));
    });
    let received: IncomingMessage | undefined;
    const answer = new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.once("response", (message) => {
        received = message;
        resolve(message);
      });
      outgoing.on("error", reject);
    });
    outgoing.end(body);
    return {
      answer,
      isStale: () => outgoing.reusedSocket && received === undefined && !this.#isStalled,
      release: () => {
        if (received?.complete !== true || !received.readableEnded) outgoing.destroy();
      },
    };
  }

  explain(error: unknown): unknown {
    const isExplained = error instanceof S3ClientError;
    // An answer that ends early may have been ended by this side.
    if (isExplained && error.code !== "truncated") return error;
    const { operation, signal } = this.#request;
    const { endpoint, attemptMs, stallMs } = this.#options;
    const details = { operation, cause: error };
    const { host } = endpoint;
    if (signal?.aborted === true) return new S3ClientError("aborted", "aborted", details);
    if (this.#deadline.signal.aborted) {
      return new S3ClientError("timeout", `${host}: not done within ${attemptMs} ms`, details);
    }
    if (this.#isStalled) {
      return new S3ClientError("timeout", `${host}: silent for ${stallMs} ms`, details);
    }
    if (isExplained) return error;
    if (error instanceof EgressError && error.code === "address_not_allowed") {
      return new S3ClientError("address_not_allowed", error.message, details);
    }
    return new S3ClientError("unreachable", `${host}: no answer`, details);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}
