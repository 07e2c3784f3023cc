// Formats access log lines as JSON from parts that are already escaped or escaped here.
import { appendBytes, appendDecimal } from "@platform/http1";

/** The IDs of a request. */
export interface LoggedIds {
  readonly requestId: string;
  /** True if the request ID is the trace ID. */
  readonly isNamedByTrace: boolean;
  /** Writes the trace ID at `at`: 32 lower-case hex digits. */
  copyTraceId(target: Uint8Array, at: number): void;
}

/** The fields of one line. Fields named `…Json` are JSON string literals from {@link quoteJson}. */
export interface AccessRecord {
  /** Epoch milliseconds when the request head was complete. */
  startedAtMs: number;
  method: string;
  /** Normalized, without the query. */
  path: string;
  status: number;
  latencyMs: number;
  /** True for event streams and upgraded connections: the latency is the time for which they were open. */
  isStream: boolean;
  clientAddress: string;
  /** The target's URL; `""` if the request was not forwarded. */
  upstreamJson: string;
  /** Error code if the gateway produced the response; empty for an upstream's response. */
  code: string;
  routeJson: string;
  ids: LoggedIds;
  attempts: number;
  /** Time to the upstream's response head; -1 if there was none. */
  upstreamMs: number;
  /** WebAssembly guests of the request with the time of their calls; null if it passed none. */
  guests: { readonly names: string; readonly usedMicroseconds: number } | null;
  /** The request to a model as JSON in ASCII; empty for other requests. */
  aiJson: string;
}

const TRACE_ID_BYTES = 32;
/** Keys, punctuation, numbers and the trace ID of a line take less. */
const FIXED_BYTES = 512;
/** A character is escaped as up to `\u1234`. */
const ESCAPED_BYTES_MAX = 6;
const LINE_BYTES = 4_096;
const QUOTE = 0x22;
const ZERO = 0x30;
const DOT = 0x2e;

const METHOD = Buffer.from('Z","method":');
const PATH = Buffer.from(',"path":');
const STATUS = Buffer.from(',"status":');
const LATENCY = Buffer.from(',"latency_ms":');
const CLIENT_IP = Buffer.from(',"client_ip":');
const UPSTREAM = Buffer.from(',"upstream":');
const CODE = Buffer.from(',"code":"');
const ROUTE = Buffer.from('","route":');
const REQUEST_ID = Buffer.from(',"request_id":');
const TRACE_ID = Buffer.from(',"trace_id":"');
const ATTEMPTS = Buffer.from('","attempts":');
const UPSTREAM_MS = Buffer.from(',"upstream_ms":');
const MIDDLEWARE = Buffer.from(',"middleware":');
const MIDDLEWARE_US = Buffer.from(',"middleware_us":');
const AI = Buffer.from(',"ai":');
const STREAM = Buffer.from(',"stream":true');
const NULL = Buffer.from("null");
const LINE_END = Buffer.from("}\n");

/** 1 for the characters that a JSON string contains as they are: printable ASCII without `"` and `\`. */
const SAFE = Uint8Array.from({ length: 128 }, (_, unit) =>
  unit >= 0x20 && unit < 0x7f && unit !== QUOTE && unit !== 0x5c ? 1 : 0,
);

/**
 * Formats lines in a buffer that is used again for each: a string of all parts would be built only to be copied. One per
 * worker.
 */
export class AccessLineFormat {
  /** The last line, with a trailing newline, ASCII only: `bytes[0, length)`. */
  bytes: Buffer = Buffer.allocUnsafeSlow(LINE_BYTES);
  length = 0;
  #second = -1;
  /** The start of lines in this second, up to the fraction. */
  #lineStart = Buffer.alloc(0);
  /** Target and outcome of the last line, and their part of it if the line before had the same. */
  #upstreamJson = "";
  #code = "";
  #routeJson = "";
  #targetPart: Buffer | null = null;

  /** Formats the line of a record. */
  format(record: AccessRecord): void {
    this.#begin(record);
    this.#timestamp(record.startedAtMs);
    this.#raw(METHOD);
    this.#quoted(record.method);
    this.#raw(PATH);
    this.#quoted(record.path);
    this.#raw(STATUS);
    this.#integer(record.status);
    this.#raw(LATENCY);
    this.#integer(Math.max(0, Math.round(record.latencyMs)));
    this.#raw(CLIENT_IP);
    this.#quoted(record.clientAddress);
    this.#target(record);
    this.#ids(record.ids);
    this.#raw(ATTEMPTS);
    this.#integer(record.attempts);
    this.#raw(UPSTREAM_MS);
    if (record.upstreamMs < 0) this.#raw(NULL);
    else this.#tenths(Math.round(record.upstreamMs * 10));
    if (record.guests !== null) {
      this.#raw(MIDDLEWARE);
      this.#quoted(record.guests.names);
      this.#raw(MIDDLEWARE_US);
      this.#integer(record.guests.usedMicroseconds);
    }
    if (record.aiJson !== "") {
      this.#raw(AI);
      this.#ascii(record.aiJson);
    }
    if (record.isStream) this.#raw(STREAM);
    this.#raw(LINE_END);
  }

  #begin(record: AccessRecord): void {
    const { method, path, clientAddress, ids, upstreamJson, code, routeJson, aiJson } = record;
    this.length = 0;
    const id = ids.isNamedByTrace ? 0 : ids.requestId.length;
    const escaped = method.length + path.length + clientAddress.length + id;
    const ascii = upstreamJson.length + code.length + routeJson.length + aiJson.length;
    const needed = FIXED_BYTES + ESCAPED_BYTES_MAX * escaped + ascii;
    const { length } = this.bytes;
    if (needed > length) this.bytes = Buffer.allocUnsafeSlow(needed);
    else if (needed <= LINE_BYTES && length > LINE_BYTES)
      this.bytes = Buffer.allocUnsafeSlow(LINE_BYTES);
  }

  #timestamp(epochMs: number): void {
    const second = Math.floor(epochMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      const text = new Date(second * 1000).toISOString().slice(0, 20);
      this.#lineStart = Buffer.from(`{"timestamp":"${text}`);
    }
    this.#raw(this.#lineStart);
    const ms = Math.floor(epochMs - second * 1000);
    const { bytes, length } = this;
    bytes[length] = ZERO + Math.floor(ms / 100);
    bytes[length + 1] = ZERO + (Math.floor(ms / 10) % 10);
    bytes[length + 2] = ZERO + (ms % 10);
    this.length = length + 3;
  }

  /** Consecutive requests often have the same target and outcome: from the third on, their part is copied. */
  #target({ upstreamJson, code, routeJson }: AccessRecord): void {
    const isSame =
      upstreamJson === this.#upstreamJson && code === this.#code && routeJson === this.#routeJson;
    if (isSame && this.#targetPart !== null) {
      this.#raw(this.#targetPart);
      return;
    }
    const start = this.length;
    this.#raw(UPSTREAM);
    this.#ascii(upstreamJson);
    this.#raw(CODE);
    this.#ascii(code);
    this.#raw(ROUTE);
    this.#ascii(routeJson);
    this.#targetPart = isSame ? Buffer.from(this.bytes.subarray(start, this.length)) : null;
    this.#upstreamJson = upstreamJson;
    this.#code = code;
    this.#routeJson = routeJson;
  }

  #ids(ids: LoggedIds): void {
    this.#raw(REQUEST_ID);
    if (ids.isNamedByTrace) {
      this.#byte(QUOTE);
      this.#traceId(ids);
      this.#byte(QUOTE);
    } else this.#quoted(ids.requestId);
    this.#raw(TRACE_ID);
    this.#traceId(ids);
  }

  #traceId(ids: LoggedIds): void {
    ids.copyTraceId(this.bytes, this.length);
    this.length += TRACE_ID_BYTES;
  }

  #raw(prepared: Uint8Array): void {
    this.length = appendBytes(this.bytes, this.length, prepared);
  }

  #byte(value: number): void {
    this.bytes[this.length++] = value;
  }

  #ascii(text: string): void {
    const { bytes } = this;
    let to = this.length;
    for (let at = 0; at < text.length; at++) bytes[to++] = text.charCodeAt(at);
    this.length = to;
  }

  #quoted(text: string): void {
    const { bytes, length } = this;
    let to = length;
    bytes[to++] = QUOTE;
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      if (unit > 0x7f || SAFE[unit] === 0) {
        this.#ascii(quoteJson(text));
        return;
      }
      bytes[to++] = unit;
    }
    bytes[to++] = QUOTE;
    this.length = to;
  }

  #integer(value: number): void {
    this.length = appendDecimal(this.bytes, this.length, value);
  }

  #tenths(value: number): void {
    const whole = Math.floor(value / 10);
    this.#integer(whole);
    if (value === whole * 10) return;
    this.#byte(DOT);
    this.#byte(ZERO + (value - whole * 10));
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
