// Formats access log lines as JSON from parts that are already escaped or escaped here.

/** The fields of one line. Fields named `…Json` are JSON string literals from {@link quoteJson}. */
export interface AccessRecord {
  /** Epoch milliseconds when the request head was complete. */
  startedAtMs: number;
  method: string;
  /** Normalized, without the query. */
  path: string;
  status: number;
  latencyMs: number;
  clientAddress: string;
  /** The target's URL; `""` if the request was not forwarded. */
  upstreamJson: string;
  /** Error code if the gateway produced the response; empty for an upstream's response. */
  code: string;
  routeJson: string;
  requestId: string;
  traceId: string;
  attempts: number;
  /** Time to the upstream's response head; -1 if there was none. */
  upstreamMs: number;
}

/** Formats lines; caches the timestamp of the current second. One per worker. */
export class AccessLineFormat {
  #second = -1;
  #secondText = "";

  /** The line with a trailing newline, ASCII only. */
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

// Any character except printable ASCII without `"` and `\`.
const UNSAFE = /[^ !#-[\]-~]/;

/** A JSON string literal in ASCII: quotes, backslashes, control and non-ASCII characters are escaped. */
export function quoteJson(text: string): string {
  if (!UNSAFE.test(text)) return `"${text}"`;
  return escapeNonAscii(JSON.stringify(text));
}

/** JSON in ASCII: other characters, which occur only in its strings, are escaped. */
export function escapeNonAscii(json: string): string {
  return json.replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function roundTenth(ms: number): number {
  return Math.round(ms * 10) / 10;
}
