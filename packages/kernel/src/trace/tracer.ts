// Spans: started from a parent or afresh, sampled, and handed to an exporter when they end.
import type { IdSource } from "../ids/index.ts";
import type { Clock } from "../time/index.ts";
import type { TraceContext } from "./context.ts";

/** What a span may say about itself. */
export type AttributeValue = string | number | boolean | readonly string[];

/** The role of a span in its trace, as OpenTelemetry names it. */
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

/** Something that happened during a span. */
export interface SpanEvent {
  readonly name: string;
  readonly atMs: number;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
}

/** Takes ended spans. It must neither throw nor wait. */
export interface SpanExporter {
  export(span: FinishedSpan): void;
  /** Sends what is queued, at most for `timeoutMs`; what is left then is dropped and counted. */
  shutdown(timeoutMs: number): Promise<void>;
}

/** A span under way. Calls after `end` change nothing. */
export interface Span {
  /** Its own place in the trace: what the next hop is to be told. */
  readonly context: TraceContext;
  /** A better name, once it is known (the route's pattern, say). */
  setName(name: string): void;
  setAttribute(key: string, value: AttributeValue): void;
  addEvent(name: string, attributes?: Readonly<Record<string, AttributeValue>>): void;
  setStatus(status: "ok" | "error", message?: string): void;
  end(): void;
}

/** How a span begins. */
export interface SpanStart {
  name: string;
  kind?: SpanKind;
  /** Undefined begins a new trace. */
  parent?: TraceContext | undefined;
  attributes?: Readonly<Record<string, AttributeValue>>;
}

/** Starts spans. */
export interface Tracer {
  startSpan(start: SpanStart): Span;
  /** Ends the exporter, if there is one. */
  shutdown(timeoutMs: number): Promise<void>;
}

/** What a tracer is made of. */
export interface TracerOptions {
  ids: IdSource;
  clock: Clock;
  /** Absent: spans carry their ids on, and record nothing. */
  exporter?: SpanExporter | undefined;
  /** Share of new traces that are sampled, 0 to 1. Default 1. Traces that came from elsewhere keep their decision. */
  sampleRatio?: number;
}

const ATTRIBUTES_MAX = 64;
const EVENTS_MAX = 32;
const VALUE_CHARACTERS_MAX = 4_096;
const RATIO_DIGITS = 13;

/** Makes a tracer. */
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

/** The same answer on every node for one trace id: whether it falls into the sampled share. */
export function isSampled(traceId: string, ratio: number): boolean {
  if (ratio >= 1) return true;
  // The right end of the id is the random one (Trace Context section 3.2.2.3.1); 13 digits are exact in a number.
  return Number.parseInt(traceId.slice(-RATIO_DIGITS), 16) < ratio * 16 ** RATIO_DIGITS;
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
  readonly #attributes = new Map<string, AttributeValue>();
  readonly #events: SpanEvent[] = [];
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
    for (const [key, value] of Object.entries(start.attributes ?? {}))
      this.setAttribute(key, value);
  }

  setName(name: string): void {
    this.#name = name;
  }

  setAttribute(key: string, value: AttributeValue): void {
    if (this.#attributes.size >= ATTRIBUTES_MAX && !this.#attributes.has(key)) {
      this.#attributesDropped += 1;
      return;
    }
    this.#attributes.set(
      key,
      typeof value === "string" ? value.slice(0, VALUE_CHARACTERS_MAX) : value,
    );
  }

  addEvent(name: string, attributes: Readonly<Record<string, AttributeValue>> = {}): void {
    if (this.#events.length < EVENTS_MAX) {
      this.#events.push({ name, atMs: this.#now(), attributes });
    }
  }

  setStatus(status: "ok" | "error", message = ""): void {
    this.#status = status;
    this.#statusMessage = message.slice(0, VALUE_CHARACTERS_MAX);
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#exporter.export({
      context: this.context,
      parentSpanId: this.#start.parent?.spanId ?? "",
      name: this.#name,
      kind: this.#start.kind ?? "internal",
      startMs: this.#startMs,
      endMs: this.#now(),
      attributes: this.#attributes,
      attributesDropped: this.#attributesDropped,
      events: this.#events,
      status: this.#status,
      statusMessage: this.#statusMessage,
    });
  }

  // A stepped calendar clock must not give a span a negative length.
  #now(): number {
    return this.#startMs + (this.#clock.monotonicMs() - this.#startMonotonicMs);
  }
}
