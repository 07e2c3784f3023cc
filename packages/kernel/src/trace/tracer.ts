// Spans: started with or without a parent, sampled, and passed to an exporter when they end.
import type { IdSource } from "../ids/index.ts";
import type { Clock } from "../time/index.ts";
import type { TraceContext } from "./context.ts";

/** Value of a span attribute. */
export type AttributeValue = string | number | boolean | readonly string[];

/** Kind of a span, as in OpenTelemetry. */
export type SpanKind = "internal" | "server" | "client" | "producer" | "consumer";

/** An ended, sampled span. Times are ms since 1970 with fractions. */
export interface FinishedSpan {
  readonly context: TraceContext;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: SpanKind;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: ReadonlyMap<string, AttributeValue>;
  readonly attributesDropped: number;
  readonly events: readonly SpanEvent[];
  readonly status: "unset" | "ok" | "error";
  readonly statusMessage: string;
}

/** An event during a span. */
interface SpanEvent {
  readonly name: string;
  readonly atMs: number;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
}

/** Receives ended spans. It must neither throw nor block. */
export interface SpanExporter {
  export(span: FinishedSpan): void;
  /**
   * False for a span that would be thrown away: then nothing is made of it. Without this, all are wanted. `isFirst`: its trace has
   * begun with it.
   */
  wants?(traceId: string, isError: boolean, durationMs: number, isFirst: boolean): boolean;
  /** Sends queued spans for at most `timeoutMs`; the rest is dropped and counted. */
  shutdown(timeoutMs: number): Promise<void>;
}

/** A span. Calls after `end` have no effect. */
export interface Span {
  /** Context of the span, to be propagated to the next hop. */
  readonly context: TraceContext;
  /** Replaces the name, for example by the route's pattern. */
  setName(name: string): void;
  setAttribute(key: string, value: AttributeValue): void;
  addEvent(name: string, attributes?: Readonly<Record<string, AttributeValue>>): void;
  setStatus(status: "ok" | "error", message?: string): void;
  end(): void;
}

/** Options of a new span. */
interface SpanStart {
  name: string;
  kind?: SpanKind;
  /** If undefined, a new trace starts. */
  parent?: TraceContext | undefined;
  attributes?: Readonly<Record<string, AttributeValue>>;
}

/** Starts spans. */
export interface Tracer {
  startSpan(start: SpanStart): Span;
  /** Shuts down the exporter, if any. */
  shutdown(timeoutMs: number): Promise<void>;
}

/** Options of {@link createTracer}. */
export interface TracerOptions {
  ids: IdSource;
  clock: Clock;
  /** If absent, spans only propagate their ids. */
  exporter?: SpanExporter | undefined;
  /** Fraction of new traces that are sampled, 0 to 1. Default 1. Traces from elsewhere keep their decision. */
  sampleRatio?: number;
}

const ATTRIBUTES_MAX = 64;
const EVENTS_MAX = 32;
const VALUE_CHARACTERS_MAX = 4_096;
const RATIO_DIGITS = 13;
const STATUS_CODE = "http.response.status_code";

/** Creates a tracer. */
export function createTracer(options: TracerOptions): Tracer {
  const { ids, clock, exporter } = options;
  const sampleRatio = options.sampleRatio ?? 1;
  return {
    startSpan: (start) => {
      const { parent } = start;
      const traceId = parent?.traceId ?? ids.traceId();
      const context: TraceContext = {
        traceId,
        spanId: ids.spanId(),
        sampled: parent?.sampled ?? isSampled(traceId, sampleRatio),
        traceState: parent?.traceState ?? "",
      };
      if (!context.sampled || exporter === undefined) return new UnrecordedSpan(context);
      return new RecordedSpan(context, start, clock, exporter);
    },
    shutdown: async (timeoutMs) => exporter?.shutdown(timeoutMs),
  };
}

/** True if a trace id belongs to the sampled fraction; all nodes agree for the same id. */
export function isSampled(traceId: string, ratio: number): boolean {
  if (ratio >= 1) return true;
  // The right end of the id is random (Trace Context section 3.2.2.3.1); 13 hex digits are exact in a number.
  return Number.parseInt(traceId.slice(-RATIO_DIGITS), 16) < ratio * 16 ** RATIO_DIGITS;
}

/** True for a span that failed by its status, or by the status of its response. */
export function isFailed({ status, attributes }: FinishedSpan): boolean {
  return status === "error" || isServerError(attributes.get(STATUS_CODE));
}

function isServerError(code: AttributeValue | undefined): boolean {
  return typeof code === "number" && code >= 500;
}

class UnrecordedSpan implements Span {
  readonly context: TraceContext;
  constructor(context: TraceContext) {
    this.context = context;
  }
  setName(): void {}
  setAttribute(): void {}
  addEvent(): void {}
  setStatus(): void {}
  end(): void {}
}

class RecordedSpan implements Span {
  readonly context: TraceContext;
  readonly #start: SpanStart;
  readonly #clock: Clock;
  readonly #exporter: SpanExporter;
  readonly #startMs: number;
  readonly #startMonotonicMs: number;
  /** Names and values in turns: most spans are thrown away, and a map costs more than all else of them. */
  readonly #attributes: AttributeValue[] = [];
  #events: SpanEvent[] | undefined;
  #name: string;
  #attributesDropped = 0;
  #status: FinishedSpan["status"] = "unset";
  #statusMessage = "";
  #ended = false;

  constructor(context: TraceContext, start: SpanStart, clock: Clock, exporter: SpanExporter) {
    this.context = context;
    this.#start = start;
    this.#name = start.name;
    this.#clock = clock;
    this.#exporter = exporter;
    this.#startMs = clock.now();
    this.#startMonotonicMs = clock.monotonicMs();
    const { attributes } = start;
    for (const key in attributes) this.setAttribute(key, attributes[key]!);
  }

  setName(name: string): void {
    this.#name = name;
  }

  setAttribute(key: string, value: AttributeValue): void {
    const attributes = this.#attributes;
    for (let at = 0; at < attributes.length; at += 2) {
      if (attributes[at] !== key) continue;
      attributes[at + 1] = value;
      return;
    }
    if (attributes.length < ATTRIBUTES_MAX * 2) attributes.push(key, value);
    else this.#attributesDropped += 1;
  }

  addEvent(name: string, attributes: Readonly<Record<string, AttributeValue>> = {}): void {
    const events = (this.#events ??= []);
    if (events.length < EVENTS_MAX) events.push({ name, atMs: this.#now(), attributes });
  }

  setStatus(status: "ok" | "error", message = ""): void {
    this.#status = status;
    this.#statusMessage = message.slice(0, VALUE_CHARACTERS_MAX);
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const exporter = this.#exporter;
    const endMs = this.#now();
    const durationMs = endMs - this.#startMs;
    const { traceId } = this.context;
    const isFirst = this.#start.parent === undefined;
    if (exporter.wants?.(traceId, this.#isError(), durationMs, isFirst) === false) return;
    exporter.export({
      context: this.context,
      parentSpanId: this.#start.parent?.spanId ?? "",
      name: this.#name,
      kind: this.#start.kind ?? "internal",
      startMs: this.#startMs,
      endMs,
      attributes: this.#collect(),
      attributesDropped: this.#attributesDropped,
      events: this.#events ?? [],
      status: this.#status,
      statusMessage: this.#statusMessage,
    });
  }

  #isError(): boolean {
    if (this.#status === "error") return true;
    const at = this.#attributes.indexOf(STATUS_CODE);
    return at !== -1 && isServerError(this.#attributes[at + 1]);
  }

  #collect(): Map<string, AttributeValue> {
    const collected = new Map<string, AttributeValue>();
    const attributes = this.#attributes;
    for (let at = 0; at < attributes.length; at += 2) {
      const value = attributes[at + 1]!;
      const isLong = typeof value === "string" && value.length > VALUE_CHARACTERS_MAX;
      collected.set(
        attributes[at] as string,
        isLong ? value.slice(0, VALUE_CHARACTERS_MAX) : value,
      );
    }
    return collected;
  }

  // Monotonic, so that a stepped calendar clock cannot cause negative durations.
  #now(): number {
    return this.#startMs + (this.#clock.monotonicMs() - this.#startMonotonicMs);
  }
}
