// Spans of the last requests, kept in memory so that a trace can be shown without a collector.
import { type FinishedSpan, isFailed, type SpanExporter } from "./tracer.ts";

/** Memory for the spans of one service. */
export const KEPT_SPANS_BYTES_MAX = 1_048_576;
/** A span of this duration is slow. */
const SLOW_MS = 500;
/** Further spans of a trace are left out. */
const SPANS_PER_TRACE_MAX = 200;
/** Traces without errors and slow spans that are kept in a second. */
const ORDINARY_PER_SECOND = 50;
/** Between the end of a span and the question whether it is wanted. */
const TOLERANCE_MS = 10;
/** Approximate memory of a span without its texts, and of an attribute. */
const SPAN_BYTES = 400;
const ATTRIBUTE_BYTES = 64;
/** Parts of the memory for ordinary traces, those with slow spans, and those with errors: these are kept longest. */
const SHARES = [0.25, 0.25, 0.5] as const;

interface Trace {
  readonly spans: FinishedSpan[];
  bytes: number;
  rank: number;
}

/** Options of {@link SpanKeeper}. */
export interface SpanKeeperOptions {
  /** Default 1 MiB. */
  bytesMax?: number;
  /** Milliseconds of a clock that never goes back. */
  readMonotonicMs: () => number;
}

/**
 * Keeps ended spans by trace within a bound of memory. A trace with an error displaces only others with errors, and one that
 * is slow only others that are slow.
 */
export class SpanKeeper implements SpanExporter {
  readonly #options: Required<SpanKeeperOptions>;
  /** All traces. */
  readonly #known = new Map<string, Trace>();
  /** By rank; the trace that was added to last is the last one. */
  readonly #traces = SHARES.map(() => new Map<string, Trace>());
  readonly #bytes = SHARES.map(() => 0);
  #windowMs = -Infinity;
  #inWindow = 0;
  /** The time when a span was last kept. */
  #keptMs = -Infinity;

  constructor(options: SpanKeeperOptions) {
    this.#options = { bytesMax: KEPT_SPANS_BYTES_MAX, ...options };
  }

  /**
   * True if an ordinary span would be kept now; at most some are in a second. Give the time of its clock if you know it: a
   * reading costs as much as a twentieth of what else a small request does.
   */
  takesOrdinary(nowMs: number = this.#options.readMonotonicMs()): boolean {
    if (nowMs - this.#windowMs >= 1_000) {
      this.#windowMs = nowMs;
      this.#inWindow = 0;
    }
    return this.#inWindow < ORDINARY_PER_SECOND;
  }

  /** True if a span of this kind would be kept now. */
  takes(isError: boolean, durationMs: number, nowMs?: number): boolean {
    return isError || durationMs >= SLOW_MS || this.takesOrdinary(nowMs);
  }

  wants(traceId: string, isError: boolean, durationMs: number, isFirst: boolean): boolean {
    if (isError || durationMs >= SLOW_MS) return true;
    const now = this.#options.readMonotonicMs();
    if (this.takesOrdinary(now)) return true;
    // Most spans are thrown away: a trace in which nothing has been kept since it began needs no lookup.
    if (isFirst && now - durationMs - TOLERANCE_MS > this.#keptMs) return false;
    return this.#known.has(traceId);
  }

  export(span: FinishedSpan): void {
    const { traceId } = span.context;
    const rank = rankOf(span);
    const before = this.#known.get(traceId);
    if (before === undefined && rank === 0 && !this.takesOrdinary()) return;
    if (before === undefined) this.#inWindow += 1;
    const trace = before ?? { spans: [], bytes: 0, rank };
    if (before !== undefined) this.#remove(traceId, before);
    trace.rank = Math.max(trace.rank, rank);
    if (trace.spans.length < SPANS_PER_TRACE_MAX) {
      trace.spans.push(span);
      trace.bytes += estimateBytes(span);
    }
    this.#keptMs = this.#options.readMonotonicMs();
    this.#known.set(traceId, trace);
    this.#traces[trace.rank]!.set(traceId, trace);
    this.#bytes[trace.rank]! += trace.bytes;
    this.#evict(trace.rank);
  }

  /** The spans of a trace in the order of their ends; empty if it is not known. */
  find(traceId: string): readonly FinishedSpan[] {
    return this.#known.get(traceId)?.spans ?? [];
  }

  async shutdown(): Promise<void> {}

  #remove(traceId: string, { rank, bytes }: Trace): void {
    this.#known.delete(traceId);
    this.#traces[rank]!.delete(traceId);
    this.#bytes[rank]! -= bytes;
  }

  #evict(rank: number): void {
    const most = this.#options.bytesMax * SHARES[rank]!;
    for (const [traceId, trace] of this.#traces[rank]!) {
      if (this.#bytes[rank]! <= most) return;
      this.#remove(traceId, trace);
    }
  }
}

/** Passes spans to several receivers. */
export function combineExporters(...exporters: readonly SpanExporter[]): SpanExporter {
  const wantsAll = exporters.some((exporter) => exporter.wants === undefined);
  return {
    export: (span) => {
      for (const exporter of exporters) exporter.export(span);
    },
    wants: (...span) => wantsAll || exporters.some((exporter) => exporter.wants!(...span)),
    shutdown: async (timeoutMs) => {
      await Promise.all(exporters.map((exporter) => exporter.shutdown(timeoutMs)));
    },
  };
}

function rankOf(span: FinishedSpan): number {
  if (isFailed(span)) return 2;
  return span.endMs - span.startMs >= SLOW_MS ? 1 : 0;
}

function estimateBytes({ name, attributes, events, statusMessage }: FinishedSpan): number {
  let characters = name.length + statusMessage.length;
  let entries = attributes.size;
  const add = (key: string, value: unknown): void => {
    characters += key.length + String(value).length;
  };
  for (const [key, value] of attributes) add(key, value);
  for (const event of events) {
    characters += event.name.length;
    entries += 1;
    for (const [key, value] of Object.entries(event.attributes)) add(key, value);
  }
  return SPAN_BYTES + entries * ATTRIBUTE_BYTES + characters * 2;
}
