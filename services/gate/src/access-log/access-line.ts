// One line of the access log as JSON text, put together from parts that cannot break out of it.

/** What is said of one request. Fields named `…Json` are JSON string literals, made once by {@link quoteJson}. */
export interface AccessRecord {
  /** Epoch milliseconds at which the request's head was complete. */
  startedAtMs: number;
  method: string;
  /** Normalised, without the query. */
  path: string;
  status: number;
  latencyMs: number;
  clientAddress: string;
  /** The target's URL; `""` where none was asked. */
  upstreamJson: string;
  /** Error code of an answer that the gateway made; empty for an upstream's answer. */
  code: string;
  routeJson: string;
  requestId: string;
  traceId: string;
  attempts: number;
  /** Until the upstream's response head; -1 where none came. */
  upstreamMs: number;
}

/** Formats lines; remembers the current second's timestamp. One per worker. */
export class AccessLineFormat {
  #second = -1;
  #secondText = "";

  /** The line with its newline, ASCII only. */
  format(record: AccessRecord): string {
    const second = Math.floor(record.startedAtMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#secondText = new Date(second * 1000).toISOString().slice(0, 20);
    }
    const ms = String(Math.floor(record.startedAtMs - second * 1000)).padStart(3, "0");
    const upstreamMs = record.upstreamMs < 0 ? "null" : String(roundTenth(record.upstreamMs));
    return `{"timestamp":"${this.#secondText}${ms}Z","method":${quoteJson(record.method)},"path":${quoteJson(record.path)},"status":${record.status},"latency_ms":${Math.round(record.latencyMs)},"client_ip":${quoteJson(record.clientAddress)},"upstream":${record.upstreamJson},"code":"${record.code}","route":${record.routeJson},"request_id":${quoteJson(record.requestId)},"trace_id":"${record.traceId}","attempts":${record.attempts},"upstream_ms":${upstreamMs}}\n`;
  }
}

// Anything but printable ASCII without the quote and the backslash.
const UNSAFE = /[^ !#-[\]-~]/;

/** A JSON string literal in ASCII: quotes, backslashes, control characters and what is not ASCII are escaped. */
export function quoteJson(text: string): string {
  if (!UNSAFE.test(text)) return `"${text}"`;
  return JSON.stringify(text).replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function roundTenth(ms: number): number {
  return Math.round(ms * 10) / 10;
}
