// Background exporter: sends batches of spans to an OTLP/HTTP collector, with a bounded queue.
// https://opentelemetry.io/docs/specs/otlp/#otlphttp
import { setTimeout as sleep } from "node:timers/promises";
import type { MetricRegistry } from "../metrics/index.ts";
import { encodeSpans, type TraceResource } from "./otlp-json.ts";
import type { FinishedSpan, SpanExporter } from "./tracer.ts";

/** Reasons for lost spans. */
export type SpanLoss = "queue_full" | "rejected" | "unreachable" | "shutdown";

/** Counts exported and lost spans. */
export interface SpanCounts {
  exported(spans: number): void;
  dropped(reason: SpanLoss, spans: number): void;
}

/** Names and help texts of span counters, the same in all services. */
export const SPAN_METRICS = {
  exported: {
    name: "platform_trace_spans_exported_total",
    help: "Spans accepted by the collector.",
  },
  dropped: {
    name: "platform_trace_spans_dropped_total",
    help: "Lost spans by reason.",
  },
} as const;

/** Creates span counters in a registry. */
export function createSpanCounts(metrics: MetricRegistry): SpanCounts {
  const exported = metrics.counter(SPAN_METRICS.exported);
  const dropped = metrics.counter({ ...SPAN_METRICS.dropped, labels: ["reason"] });
  return {
    exported: (spans) => exported.add(spans),
    dropped: (reason, spans) => dropped.with({ reason }).add(spans),
  };
}

/** Options of {@link createOtlpExporter}. */
export interface OtlpExporterOptions {
  /** Base URL of the collector, such as `http://host:4318`; `/v1/traces` is appended if missing. */
  endpoint: string;
  resource: TraceResource;
  counts: SpanCounts;
  /** Extra request headers, such as a collector's API key. */
  headers?: Readonly<Record<string, string>>;
  /** Maximum number of queued spans; further ones are dropped and counted. Default 2 048. */
  queueMax?: number;
  /** Maximum number of spans per request. Default 512. */
  batchMax?: number;
  /** Maximum delay of a partly filled batch in ms. Default 5 000. */
  delayMs?: number;
  /** Request timeout in ms. Default 10 000. */
  timeoutMs?: number;
  /** Maximum number of attempts per batch, including the first. Default 5. */
  attemptsMax?: number;
  /** Initial delay between attempts in ms, doubled up to 30 s. Default 1 000. */
  backoffMs?: number;
}

const BACKOFF_MAX_MS = 30_000;
const RETRY_AFTER_MAX_MS = 60_000;
const ANSWER_BYTES_MAX = 65_536;
const RETRYABLE = new Set([429, 502, 503, 504]);

type Outcome =
  | { kind: "sent"; rejected: number }
  | { kind: "refused" }
  | { kind: "later"; afterMs: number | undefined };

/** Resolves the address of a collector to its traces endpoint. Throws a TypeError if it is not an http or https URL. */
export function resolveTracesEndpoint(address: string): string {
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(address) ? address : `http://${address}`);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new TypeError("a collector's address must be an http or https URL");
  }
  if (!url.pathname.endsWith("/v1/traces")) {
    url.pathname = `${url.pathname.replace(/\/+$/, "")}/v1/traces`;
  }
  return url.href;
}

/** Creates the exporter; its timers do not keep the process alive. */
export function createOtlpExporter(options: OtlpExporterOptions): SpanExporter {
  return new OtlpExporter(options);
}

class OtlpExporter implements SpanExporter {
  readonly #options: Required<OtlpExporterOptions>;
  readonly #endpoint: string;
  readonly #headers: Record<string, string>;
  readonly #count: SpanCounts;
  readonly #stopped = new AbortController();
  #queue: FinishedSpan[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #closing = false;

  constructor(options: OtlpExporterOptions) {
    this.#options = {
      headers: {},
      queueMax: 2_048,
      batchMax: 512,
      delayMs: 5_000,
      timeoutMs: 10_000,
      attemptsMax: 5,
      backoffMs: 1_000,
      ...options,
    };
    const url = new URL(resolveTracesEndpoint(options.endpoint));
    this.#headers = { ...this.#options.headers, "Content-Type": "application/json" };
    // `fetch` rejects URLs with credentials.
    if (url.username !== "") {
      const pair = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
      this.#headers["Authorization"] = `Basic ${Buffer.from(pair).toString("base64")}`;
      url.username = "";
      url.password = "";
    }
    this.#endpoint = url.href;
    this.#count = options.counts;
  }

  export(span: FinishedSpan): void {
    if (this.#closing) {
      this.#count.dropped("shutdown", 1);
    } else if (this.#queue.length >= this.#options.queueMax) {
      this.#count.dropped("queue_full", 1);
    } else {
      this.#queue.push(span);
      this.#schedule();
    }
  }

  async shutdown(timeoutMs: number): Promise<void> {
    this.#closing = true;
    const deadline = setTimeout(() => this.#stopped.abort(), timeoutMs);
    this.#startSending();
    while (this.#sending !== undefined) await this.#sending;
    clearTimeout(deadline);
  }

  #schedule(): void {
    if (this.#sending !== undefined) return;
    if (this.#queue.length >= this.#options.batchMax) {
      this.#startSending();
    } else {
      this.#timer ??= setTimeout(() => this.#startSending(), this.#options.delayMs).unref();
    }
  }

  #startSending(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#sending !== undefined || this.#queue.length === 0) return;
    this.#sending = this.#sendQueue().finally(() => {
      this.#sending = undefined;
      if (this.#queue.length > 0) this.#schedule();
    });
  }

  async #sendQueue(): Promise<void> {
    const { batchMax } = this.#options;
    do {
      await this.#sendBatch(this.#queue.splice(0, batchMax));
    } while (this.#queue.length >= (this.#closing ? 1 : batchMax));
  }

  async #sendBatch(batch: readonly FinishedSpan[]): Promise<void> {
    const body = encodeSpans(this.#options.resource, batch);
    for (let attempt = 1; ; attempt += 1) {
      if (this.#stopped.signal.aborted) return this.#count.dropped("shutdown", batch.length);
      const outcome = await this.#post(body);
      if (outcome.kind === "sent") {
        const rejected = Math.min(outcome.rejected, batch.length);
        this.#count.exported(batch.length - rejected);
        if (rejected > 0) this.#count.dropped("rejected", rejected);
        return;
      }
      if (outcome.kind === "refused") return this.#count.dropped("rejected", batch.length);
      if (attempt >= this.#options.attemptsMax) {
        return this.#count.dropped("unreachable", batch.length);
      }
      await this.#wait(attempt, outcome.afterMs);
    }
  }

  async #wait(attempt: number, afterMs: number | undefined): Promise<void> {
    const backoff = Math.min(this.#options.backoffMs * 2 ** (attempt - 1), BACKOFF_MAX_MS);
    const ms = afterMs ?? backoff * (0.5 + Math.random() / 2);
    // The signal ends the wait; the loop checks it.
    await sleep(ms, undefined, { ref: this.#closing, signal: this.#stopped.signal }).catch(
      () => {},
    );
  }

  async #post(body: string): Promise<Outcome> {
    const signal = AbortSignal.any([
      AbortSignal.timeout(this.#options.timeoutMs),
      this.#stopped.signal,
    ]);
    try {
      const headers = this.#headers;
      const init = { method: "POST", headers, body, signal, redirect: "manual" } as const;
      const answer = await fetch(this.#endpoint, init);
      const text = await readBounded(answer);
      if (answer.ok) return { kind: "sent", rejected: readRejected(text) };
      if (!RETRYABLE.has(answer.status)) return { kind: "refused" };
      return { kind: "later", afterMs: readRetryAfter(answer.headers.get("retry-after")) };
    } catch {
      // Refused, reset or timed out: the collector may be back later. Lost spans are counted.
      return { kind: "later", afterMs: undefined };
    }
  }
}

async function readBounded(answer: Response): Promise<string> {
  if (answer.body === null) return "";
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of answer.body) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > ANSWER_BYTES_MAX) break;
  }
  return text;
}

// ExportTraceServiceResponse: `{"partialSuccess":{"rejectedSpans":"3","errorMessage":"…"}}`. Some collectors send an
// empty body or text.
function readRejected(text: string): number {
  try {
    const body = JSON.parse(text) as { partialSuccess?: { rejectedSpans?: unknown } } | null;
    const rejected = Number(body?.partialSuccess?.rejectedSpans ?? 0);
    return Number.isFinite(rejected) && rejected > 0 ? rejected : 0;
  } catch {
    return 0;
  }
}

// RFC 9110 section 10.2.3: seconds, or a date.
function readRetryAfter(header: string | null): number | undefined {
  if (header === null) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), RETRY_AFTER_MAX_MS) : undefined;
}
