// Forwards public requests to the streams of a tunnel, and records how they end.
import {
  Known,
  isIdempotent,
  type ForwardFailure,
  type ForwardObserver,
  type ForwardTarget,
  type HeadWriter,
  type RequestEnd,
  type ResponseHead,
  type UpstreamStream,
} from "@platform/http1";
import type { SpanExporter } from "@platform/kernel/trace";
import type { RelayMetrics } from "../metrics.ts";
import { answerTunnelError, type TunnelErrorCode } from "./answers.ts";
import type { ConnectedTunnel, Stripping } from "./connected-tunnel.ts";
import type { RequestState, RelayExchange } from "./request-state.ts";
import { TunnelStream, type StreamLoss } from "./tunnel-stream.ts";

/** Options of {@link Forwarder}. */
export interface ForwarderOptions {
  /** The relay's domain: cookies for it or above are not accepted from targets. */
  domain: string;
  metrics: RelayMetrics;
  spans: SpanExporter;
  /** A request has ended; for the client's terminal. */
  onFinished: (tunnel: ConnectedTunnel, state: RequestState, end: RequestEnd) => void;
}

/** Times that a request is sent again after it met a connection that the target had closed. */
const RETRIES_MAX = 3;
/** nginx's convention for clients that disconnected before a response. */
const CLIENT_CLOSED_REQUEST = 499;
const COOKIE = Buffer.from("Cookie: ");

/** Forwards requests; one per relay. */
export class Forwarder implements ForwardObserver<RequestState> {
  readonly #options: ForwarderOptions;

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  /** Forwards a request. `onEnd` of the exchange must call `finish`. */
  start(exchange: RelayExchange, tunnel: ConnectedTunnel, strip: Stripping): void {
    exchange.userData.tunnel = tunnel;
    exchange.forward(tunnel.targetFor(strip), this);
  }

  onRequestHead(
    exchange: RelayExchange,
    writer: HeadWriter,
    _target: ForwardTarget,
    stream: UpstreamStream | null,
  ): void {
    const state = exchange.userData;
    writer.raw(state.forwarding.lines);
    state.ids.write(writer);
    if (state.cookie !== null && state.cookie !== "") writer.fieldAfter(COOKIE, state.cookie);
    if (stream instanceof TunnelStream) stream.tap = state.tap;
  }

  onResponseHead(_exchange: RelayExchange, head: ResponseHead, writer: HeadWriter): void {
    const { fields } = head;
    for (let line = fields.first(Known.SetCookie); line !== -1; line = fields.next(line)) {
      const value = fields.value(line);
      if (isOwnCookie(value, this.#options.domain)) writer.field("Set-Cookie", value);
    }
  }

  onFailure(exchange: RelayExchange, failure: ForwardFailure): ForwardTarget | null {
    if (exchange.aborted) return null;
    const state = exchange.userData;
    const mayRepeat =
      failure.code === "UNDELIVERED" ||
      (failure.kind === "reset-on-idle" &&
        failure.code !== "SESSION_LOST" &&
        failure.code !== "SILENT" &&
        isIdempotent(exchange.head.methodId));
    if (mayRepeat && failure.replayable && state.retries < RETRIES_MAX) {
      state.retries++;
      state.tap?.onRestart();
      return failure.target;
    }
    answerTunnelError(exchange, chooseCode(failure));
    return null;
  }

  /** Records the end of a request that was forwarded or answered by the relay. */
  finish(exchange: RelayExchange, end: RequestEnd): void {
    const state = exchange.userData;
    const { metrics, spans, onFinished } = this.#options;
    const { tunnel, tap } = state;
    if (state.errorCode !== "") metrics.countError(state.errorCode);
    if (tunnel === null) return;
    if (state.errorCode === "" && end.status !== 0) metrics.proxied.add();
    metrics.latencyMs.observe(end.totalMs);
    metrics.bytesIn.add(end.bytesIn);
    metrics.bytesOut.add(end.bytesOut);
    tap?.onEnd({
      status: end.status,
      latencyMs: end.totalMs,
      isComplete: end.outcome === "complete" || end.outcome === "tunnel-closed",
      errorCode: state.errorCode,
      bytesIn: end.bytesIn,
      bytesOut: end.bytesOut,
    });
    onFinished(tunnel, state, end);
    if (state.ids.isSampled) exportSpan(spans, tunnel, state, end);
    state.tap = null;
    state.tunnel = null;
  }
}

function chooseCode(failure: ForwardFailure): TunnelErrorCode {
  switch (failure.kind) {
    case "queue-full":
    case "queue-timeout":
      return "too_many_requests";
    case "connect-failed":
    case "pool-closed":
      return "tunnel_offline";
    case "response-timeout":
    case "total-timeout":
      return "target_timeout";
    case "malformed-response":
      return isLoss(failure.code) ? codeOfLoss(failure.code) : "invalid_response";
    case "connect-refused":
    case "connect-timeout":
    case "tls-failed":
    case "reset-on-idle":
    case "reset":
      return isLoss(failure.code) ? codeOfLoss(failure.code) : "target_broke_off";
    default:
      return failure.kind satisfies never;
  }
}

const LOSSES: Readonly<Record<StreamLoss, TunnelErrorCode>> = {
  REFUSED: "target_refused",
  UNREACHABLE: "target_unreachable",
  TIMED_OUT: "target_timeout",
  BROKEN: "target_broke_off",
  TLS_FAILED: "target_tls_failed",
  OVERLOADED: "too_many_requests",
  SESSION_LOST: "tunnel_offline",
  SILENT: "client_unresponsive",
  UNDELIVERED: "target_broke_off",
};

function isLoss(code: string): code is StreamLoss {
  return Object.hasOwn(LOSSES, code);
}

function codeOfLoss(loss: StreamLoss): TunnelErrorCode {
  return LOSSES[loss];
}

/**
 * False for cookies whose Domain is above the tunnel's own host: they would reach other tunnels, or log their visitors out
 * of them. Without Domain a cookie stays on its host (RFC 6265 section 5.3).
 */
function isOwnCookie(value: string, domain: string): boolean {
  const found = /;\s*domain\s*=\s*([^;]*)/i.exec(value);
  if (found === null) return true;
  const wanted = (found[1] ?? "").trim().replace(/^\./, "").toLowerCase();
  return wanted !== domain && !domain.endsWith(`.${wanted}`) && wanted !== "";
}

function exportSpan(
  spans: SpanExporter,
  tunnel: ConnectedTunnel,
  state: RequestState,
  end: RequestEnd,
): void {
  const { ids } = state;
  const status = end.status === 0 ? CLIENT_CLOSED_REQUEST : end.status;
  const attributes = new Map<string, string | number>([
    ["http.request.method", state.method],
    ["http.response.status_code", status],
    ["url.path", state.path],
    ["client.address", state.forwarding.clientAddress],
    ["platform.tunnel.id", tunnel.row.id],
    ["platform.tunnel.subdomain", tunnel.row.subdomain ?? ""],
  ]);
  if (state.errorCode !== "") attributes.set("error.type", state.errorCode);
  spans.export({
    context: {
      traceId: ids.traceId,
      spanId: ids.spanId,
      sampled: true,
      traceState: ids.traceState,
    },
    parentSpanId: ids.parentSpanId,
    name: "tunnel.proxy",
    kind: "server",
    startMs: state.startedAtEpochMs,
    endMs: state.startedAtEpochMs + end.totalMs,
    attributes,
    attributesDropped: 0,
    events: [],
    status: status >= 500 ? "error" : "unset",
    statusMessage: "",
  });
}
