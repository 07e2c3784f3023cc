// One HTTP request to the store, over connections that are kept.
import { once } from "node:events";
import {
  Agent as HttpAgent,
  type ClientRequest,
  type IncomingMessage,
  request as requestHttp,
} from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { EgressError, type EgressGuard } from "@platform/kernel/egress";
import { S3ClientError, type S3Operation } from "./error.ts";

/** Longest time of a body that is sent while it is read; its stalls end it sooner. */
const STREAM_MS_MAX = 86_400_000;

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
}

/** Sends requests; rejects with an S3ClientError. */
export class Transport {
  readonly #options: TransportOptions;
  readonly #agent: HttpAgent | HttpsAgent;
  readonly #streams: HttpAgent | HttpsAgent;

  constructor(options: TransportOptions) {
    this.#options = options;
    const { endpoint, guard, ca, socketsMax } = options;
    const shared = {
      keepAlive: true,
      maxSockets: socketsMax,
      maxFreeSockets: socketsMax,
      ...(guard === undefined ? {} : { lookup: guard.lookup }),
    };
    const secure = { ...shared, ...(ca === undefined ? {} : { ca: [...ca] }) };
    const isSecure = endpoint.protocol === "https:";
    this.#agent = isSecure ? new HttpsAgent(secure) : new HttpAgent(shared);
    const once = { keepAlive: false };
    this.#streams = isSecure
      ? new HttpsAgent({ ...secure, ...once })
      : new HttpAgent({ ...shared, ...once });
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
    const agent = isStream(request.body) ? this.#streams : this.#agent;
    try {
      for (let isRetry = false; ; isRetry = true) {
        const sent = attempt.open(agent);
        try {
          const answer = await sent.answer;
          if (request.isOpen) attempt.endLimits(answer);
          return await read(answer);
        } catch (error) {
          const isLast = isRetry || request.isOnce || attempt.isOver;
          if (isLast || !sent.isStale(error)) throw error;
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
    this.#streams.destroy();
  }
}

function isStream(body: TransportRequest["body"]): body is AsyncIterable<Uint8Array> {
  return body !== undefined && Symbol.asyncIterator in body;
}

// Ends early if the store answers before it has everything, or closes the connection.
async function sendStream(
  outgoing: ClientRequest,
  body: AsyncIterable<Uint8Array>,
  stallMs: number,
): Promise<void> {
  const over = new AbortController();
  outgoing.once("close", () => over.abort());
  try {
    for await (const chunk of body) {
      if (over.signal.aborted) return;
      if (outgoing.write(chunk)) continue;
      outgoing.setTimeout(stallMs);
      await once(outgoing, "drain", { signal: over.signal });
      outgoing.setTimeout(0);
    }
    outgoing.setTimeout(stallMs);
    outgoing.end();
  } catch (error) {
    if (!over.signal.aborted) outgoing.destroy(error as Error);
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
  readonly #timer: NodeJS.Timeout;
  #outgoing: ClientRequest | undefined;
  #isLate = false;
  #isStalled = false;

  constructor(options: TransportOptions, request: TransportRequest) {
    this.#options = options;
    this.#request = request;
    const limitMs = isStream(request.body) ? STREAM_MS_MAX : options.attemptMs;
    this.#timer = setTimeout(() => {
      this.#isLate = true;
      this.#cancel();
    }, limitMs);
    // Signals that follow several others, and the one of a request, cost more than all else that it needs.
    for (const signal of request.signals) signal.addEventListener("abort", this.#cancel);
  }

  readonly #cancel = (): void => {
    this.#outgoing?.destroy(new Error("the request was ended"));
  };

  endLimits(answer: IncomingMessage): void {
    clearTimeout(this.#timer);
    answer.socket.setTimeout(0);
  }

  get isOver(): boolean {
    return this.#isLate || this.#isAborted;
  }

  get #isAborted(): boolean {
    return this.#request.signals.some(({ aborted }) => aborted);
  }

  open(agent: HttpAgent | HttpsAgent): Sent {
    const { endpoint, guard, stallMs } = this.#options;
    const { method, hostname, target, headers, body } = this.#request;
    guard?.checkHost(hostname);
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
      // The source of a stream may be slower than that.
      timeout: isStream(body) ? 0 : stallMs,
    });
    this.#outgoing = outgoing;
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
    if (this.isOver) this.#cancel();
    if (isStream(body)) void sendStream(outgoing, body, stallMs);
    else outgoing.end(body);
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
    const { operation } = this.#request;
    const { endpoint, attemptMs, stallMs } = this.#options;
    const details = { operation, cause: error };
    const { host } = endpoint;
    if (this.#isAborted) return new S3ClientError("aborted", "aborted", details);
    if (this.#isLate) {
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
    for (const signal of this.#request.signals) signal.removeEventListener("abort", this.#cancel);
  }
}
