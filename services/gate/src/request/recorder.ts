// Records the metrics, access log line and span of every request when it ends.
import type { RequestEnd } from "@platform/http1";
import type { FinishedSpan, SpanExporter, SpanKeeper } from "@platform/kernel/trace";
import type { AccessLineFormat } from "../access-log/access-line.ts";
import type { AccessLogWriter } from "../access-log/access-log-writer.ts";
import type { MetricBlock } from "../shared-state/index.ts";
import type { GateExchange } from "../exchange/exchange.ts";

/** nginx's convention for clients that disconnected before a response. */
const CLIENT_CLOSED_REQUEST = 499;
const NO_JSON = '""';
/** Longest path in a span: up to 2 048 spans are queued for a slow collector. */
const SPAN_PATH_CHARACTERS_MAX = 4_096;

/** Records finished requests; one per worker. */
export class Recorder {
  /** Undefined if no route has an access log. */
  accessLog: AccessLogWriter | undefined;
  /** Undefined if spans are not exported. */
  spans: SpanExporter | undefined;
  /** Spans for the console, without a collector. */
  readonly kept: SpanKeeper;
  readonly #block: MetricBlock;
  readonly #format: AccessLineFormat;

  constructor(block: MetricBlock, format: AccessLineFormat, kept: SpanKeeper) {
    this.#block = block;
    this.#format = format;
    this.kept = kept;
  }

  /** True if the request's path and method are needed when it ends. */
  needsRequestLine(exchange: GateExchange): boolean {
    const { route } = exchange.userData;
    if (this.spans !== undefined || this.kept.takesOrdinary(exchange.startedAtMs)) return true;
    return route !== null && (route.spec.accessLog || route.spec.steps.record !== undefined);
  }

  /** Records a request that has ended. */
  record(exchange: GateExchange, end: RequestEnd): void {
    const state = exchange.userData;
    const status = end.status === 0 ? CLIENT_CLOSED_REQUEST : end.status;
    if (state.series !== null) {
      const series = state.series.find(this.#block, state.methodIndex, status);
      if (state.isStream) this.#block.addStream(series);
      else this.#block.addRequest(series, readHeadMs(end) / 1000);
    }
    const isKept = this.#isKept(exchange, status, end);
    if (state.path !== "") {
      if (state.route?.spec.accessLog === true && this.accessLog !== undefined) {
        this.#log(exchange, status, end);
      }
      if (!isKept && this.spans === undefined) return;
    } else if (!isKept) return;
    if (!state.ids.isSampled) return;
    const span = describeSpan(exchange, status, end);
    if (isKept) this.kept.export(span);
    if (state.path !== "") this.spans?.export(span);
  }

  // A stream is not slow. The gateway's own paths have no series.
  #isKept(exchange: GateExchange, status: number, end: RequestEnd): boolean {
    const state = exchange.userData;
    if (state.series === null) return false;
    const { totalMs } = end;
    return this.kept.takes(
      status >= 500,
      state.isStream ? 0 : totalMs,
      exchange.startedAtMs + totalMs,
    );
  }

  #log(exchange: GateExchange, status: number, end: RequestEnd): void {
    const state = exchange.userData;
    const format = this.#format;
    format.format({
      startedAtMs: state.startedAtEpochMs,
      method: state.method,
      path: state.path,
      status,
      latencyMs: end.totalMs,
      isStream: state.isStream,
      clientAddress: state.forwarding.clientAddress,
      upstreamJson: state.target?.urlJson ?? NO_JSON,
      code: state.code,
      routeJson: state.route?.labelJson ?? NO_JSON,
      ids: state.ids,
      attempts: end.attempts,
      upstreamMs: end.upstreamMs,
      guests: state.guests,
      aiJson: state.ai?.describe() ?? "",
    });
    this.accessLog?.appendBytes(format.bytes, format.length);
  }
}

function describeSpan(exchange: GateExchange, status: number, end: RequestEnd): FinishedSpan {
  const state = exchange.userData;
  const { ids } = state;
  const label = state.route?.label ?? "";
  const attributes = new Map<string, string | number>([
    ["http.request.method", state.method],
    ["http.route", label],
    ["http.response.status_code", status],
    ["url.path", cutPath(state.path)],
    ["client.address", state.forwarding.clientAddress],
    ["platform.attempts", end.attempts],
  ]);
  if (state.target !== null) attributes.set("platform.upstream", state.target.url);
  if (end.upstreamMs >= 0) attributes.set("platform.upstream_ms", end.upstreamMs);
  if (state.guests !== null) {
    attributes.set("platform.middleware", state.guests.names);
    attributes.set("platform.middleware_us", state.guests.usedMicroseconds);
  }
  if (state.ai !== null) {
    for (const [name, value] of state.ai.listAttributes()) attributes.set(name, value);
  }
  if (state.code !== "") attributes.set("error.type", state.code);
  return {
    context: {
      traceId: ids.traceId,
      spanId: ids.spanId,
      sampled: true,
      traceState: ids.traceState,
    },
    parentSpanId: ids.parentSpanId,
    name: label === "" ? state.method : `${state.method} ${label}`,
    kind: "server",
    startMs: state.startedAtEpochMs,
    endMs: state.startedAtEpochMs + end.totalMs,
    attributes,
    attributesDropped: 0,
    events: [],
    status: status >= 500 ? "error" : "unset",
    statusMessage: "",
  };
}

// A slow client or a long download is no slow route.
function readHeadMs({ upstreamMs, totalMs }: RequestEnd): number {
  return upstreamMs >= 0 ? Math.min(upstreamMs, totalMs) : totalMs;
}

// The copy keeps the slice from retaining the whole string.
function cutPath(path: string): string {
  if (path.length <= SPAN_PATH_CHARACTERS_MAX) return path;
  return Buffer.from(path.slice(0, SPAN_PATH_CHARACTERS_MAX)).toString();
}
