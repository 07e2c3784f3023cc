// Sends captured requests again through their tunnels.
import { Chunk, ChunkedDecoder, findMethod, Framing, Parse, ResponseParser } from "@platform/http1";
import { createRetryLaterError, PlatformError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import { formatTraceparent, type Tracer } from "@platform/kernel/trace";
import type { CapturedRequest } from "../capture/captured-request.ts";
import type { Field } from "../capture/message.ts";
import { buildReplay, type ReplayEdits, type ReplayRequest } from "../capture/replay-request.ts";
import type { Capture, RequestTap } from "../capture/tap.ts";
import { ResetCode, type ResetCodeId } from "../frame/format.ts";
import type { Stream, StreamListener } from "../frame/stream.ts";
import type { ConnectedTunnel } from "./connected-tunnel.ts";
import type { Hub } from "./hub.ts";

/** Options of {@link Replayer}. */
export interface ReplayerOptions {
  hub: Hub;
  capture: Capture;
  clock: Clock;
  tracer: Tracer;
  responseTimeoutMs: number;
}

/** A replayed request. */
export interface Replayed {
  /** Id of the captured replay. */
  readonly id: string;
  readonly status: number;
  /** To the end of the response. */
  readonly latencyMs: number;
}

/** Replays of one tunnel at the same time. */
const REPLAYS_PER_TUNNEL_MAX = 8;
/** A response that is longer, or takes longer, is cut off: an endless one as well. */
const RESPONSE_BYTES_MAX = 16_777_216;
const RESPONSE_BODY_MS = 10_000;

/** Replays requests. */
export class Replayer {
  readonly #options: ReplayerOptions;
  readonly #running = new Map<string, number>();

  constructor(options: ReplayerOptions) {
    this.#options = options;
  }

  /**
   * Sends the request again; resolves when its response is complete or was cut off. Throws 400 or 409 (see
   * `buildReplay`), 429, 502 and 504.
   */
  async replay(entry: CapturedRequest, edits: ReplayEdits): Promise<Replayed> {
    const { hub, tracer } = this.#options;
    const { id } = entry.begun.tunnel;
    const span = tracer.startSpan({
      name: "tunnel.replay",
      kind: "client",
      attributes: { "platform.tunnel.id": id, "platform.tunnel.replay_of": entry.id },
    });
    try {
      const trace: Field[] = [["traceparent", formatTraceparent(span.context)]];
      const request = buildReplay(entry, edits, trace);
      const tunnel = hub.find(id);
      if (tunnel === undefined || !tunnel.session.isResponsive) {
        throw new PlatformError("upstream_unreachable", "The tunnel's client is not connected.");
      }
      return await this.#limit(id, () => this.#send(tunnel, entry, request));
    } catch (error) {
      span.setStatus("error", error instanceof Error ? error.message : "");
      throw error;
    } finally {
      span.end();
    }
  }

  async #limit<T>(id: string, work: () => Promise<T>): Promise<T> {
    const running = this.#running.get(id) ?? 0;
    if (running >= REPLAYS_PER_TUNNEL_MAX) {
      throw createRetryLaterError("too_many_requests", "Too many replays are running.", 1);
    }
    this.#running.set(id, running + 1);
    try {
      return await work();
    } finally {
      const left = (this.#running.get(id) ?? 1) - 1;
      if (left === 0) this.#running.delete(id);
      else this.#running.set(id, left);
    }
  }

  async #send(
    tunnel: ConnectedTunnel,
    entry: CapturedRequest,
    request: ReplayRequest,
  ): Promise<Replayed> {
    const { capture, clock, hub, responseTimeoutMs } = this.#options;
    const stream = tunnel.openStream();
    if (stream === null) {
      throw createRetryLaterError("overloaded", "Too many requests are in flight.", 1);
    }
    const startedAt = clock.now();
    const startedMs = clock.monotonicMs();
    const { method, path } = request;
    const tap = capture.begin({
      tunnel: tunnel.row,
      method,
      path,
      client: "replay",
      startedAt,
      replayOf: entry.id,
    });
    const attempt = new Attempt(stream, tap, request);
    const outcome = await attempt.run(responseTimeoutMs);
    const latencyMs = clock.monotonicMs() - startedMs;
    const { status, isComplete, bytes } = outcome;
    const errorCode = status === 0 ? "target_broke_off" : "";
    const sizes = { bytesIn: request.content.length, bytesOut: bytes };
    tap?.onEnd({ status, latencyMs, isComplete, errorCode, ...sizes });
    hub.findClient(tunnel.row.id)?.note({
      tunnel: tunnel.number,
      id: tap?.id ?? "",
      time: new Date(startedAt).toISOString(),
      method,
      path: path.replace(/\?.*$/s, ""),
      status,
      latency_ms: Math.round(latencyMs * 1_000) / 1_000,
    });
    if (outcome.failure !== undefined) throw outcome.failure;
    return { id: tap?.id ?? "", status, latencyMs };
  }
}

interface Outcome {
  /** 0 without a response. */
  readonly status: number;
  readonly isComplete: boolean;
  /** Size of the response's body, with framing. */
  readonly bytes: number;
  /** Set if there is no response. */
  readonly failure: PlatformError | undefined;
}

/** One request on its own stream. The body is sent as the stream's credit allows; the response is only observed. */
class Attempt implements StreamListener {
  readonly #stream: Stream;
  readonly #tap: RequestTap | null;
  readonly #request: ReplayRequest;
  readonly #parser = new ResponseParser();
  readonly #chunks = new ChunkedDecoder();
  readonly #done = Promise.withResolvers<Outcome>();
  #timer: NodeJS.Timeout | undefined;
  #status = 0;
  #bodyBytes = 0;

  constructor(stream: Stream, tap: RequestTap | null, request: ReplayRequest) {
    this.#stream = stream;
    this.#tap = tap;
    this.#request = request;
    this.#parser.expect(findMethod(request.head, 0, request.method.length));
  }

  run(responseTimeoutMs: number): Promise<Outcome> {
    const { head, content } = this.#request;
    this.#stream.listener = this;
    this.#timer = setTimeout(() => {
      this.#fail("upstream_timeout", "The local service did not respond in time.");
    }, responseTimeoutMs);
    for (const bytes of [head, content]) {
      if (bytes.length === 0) continue;
      this.#tap?.onRequestBytes(bytes);
      this.#stream.write(bytes);
    }
    return this.#done.promise;
  }

  onBytes(bytes: Buffer): void {
    this.#tap?.onResponseBytes(bytes);
    if (this.#status === 0) this.#readHead(bytes);
    else this.#readBody(bytes, 0);
  }

  onEnd(): void {
    if (this.#status === 0) {
      this.#fail(
        "upstream_unreachable",
        "The local service closed the connection without a response.",
      );
    } else this.#settle(this.#parser.framing === Framing.UntilClose);
  }

  onDrain(): void {
    // The whole request has been written.
  }

  onReset(code: ResetCodeId): void {
    if (this.#status !== 0) this.#settle(false);
    else this.#fail("upstream_unreachable", explainReset(code));
  }

  #readHead(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at = this.#parser.next) {
      const result = this.#parser.execute(bytes, at, bytes.length);
      if (result === Parse.NeedsMore) return;
      if (result === Parse.Refused) {
        this.#fail(
          "upstream_invalid_response",
          "The response of the local service is not valid HTTP.",
        );
        return;
      }
      if (!this.#parser.informational) {
        this.#beginBody(bytes);
        return;
      }
      this.#parser.reset();
    }
  }

  #beginBody(bytes: Buffer): void {
    this.#status = this.#parser.status;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#settle(false), RESPONSE_BODY_MS);
    this.#readBody(bytes, this.#parser.next);
  }

  #readBody(bytes: Buffer, start: number): void {
    this.#bodyBytes += bytes.length - start;
    if (this.#isBodyComplete(bytes, start)) this.#settle(true);
    else if (this.#bodyBytes > RESPONSE_BYTES_MAX) this.#settle(false);
  }

  #isBodyComplete(bytes: Buffer, start: number): boolean {
    const { framing, contentLength } = this.#parser;
    switch (framing) {
      case Framing.None:
      case Framing.Tunnel:
        return true;
      case Framing.Length:
        return this.#bodyBytes >= contentLength;
      case Framing.Chunked:
        return this.#chunks.skim(bytes, start, bytes.length) === Chunk.Complete;
      case Framing.UntilClose:
        return false;
      default:
        return framing satisfies never;
    }
  }

  #fail(
    code: "upstream_unreachable" | "upstream_invalid_response" | "upstream_timeout",
    detail: string,
  ): void {
    this.#finish({ isComplete: false, failure: new PlatformError(code, detail) });
  }

  #settle(isComplete: boolean): void {
    this.#finish({ isComplete, failure: undefined });
  }

  #finish(end: Pick<Outcome, "isComplete" | "failure">): void {
    clearTimeout(this.#timer);
    this.#stream.reset(ResetCode.Cancelled);
    this.#done.resolve({ status: this.#status, bytes: this.#bodyBytes, ...end });
  }
}

function explainReset(code: ResetCodeId): string {
  switch (code) {
    case ResetCode.Refused:
      return "The local service refused the connection: it is probably not running.";
    case ResetCode.TlsFailed:
      return "The TLS handshake with the local service failed.";
    case ResetCode.Unreachable:
    case ResetCode.UnknownTunnel:
    case ResetCode.TimedOut:
      return "The local service could not be reached.";
    case ResetCode.Broken:
    case ResetCode.Overloaded:
    case ResetCode.OverCredit:
      return "The local service closed the connection without a response.";
    case ResetCode.Cancelled:
      return "The tunnel's client has disconnected.";
    default:
      return code satisfies never;
  }
}
