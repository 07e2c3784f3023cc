// Trace context (W3C Trace Context level 1) and request ID of a request, kept as bytes until they are read.
import { randomFillSync } from "node:crypto";
import { normalizeTraceState } from "@platform/kernel/trace";
import { type FieldBlock, Known } from "../parse/index.ts";
import type { HeadWriter } from "../write/index.ts";
import { joinLines } from "./forwarding-fields.ts";

/** Fields that are always removed from client requests and written again. */
export const ID_FIELDS: readonly string[] = ["traceparent", "tracestate", "X-Request-Id"];

const POOL_BYTES = 4_096;

/** Random hex digits, generated in bulk. One per thread. */
export class HexPool {
  readonly #random = Buffer.allocUnsafeSlow(POOL_BYTES);
  readonly #digits = Buffer.allocUnsafeSlow(2 * POOL_BYTES);
  #used = 2 * POOL_BYTES;

  /** Writes `count` unused digits (even, at most 64) at `at`. */
  take(target: Buffer, at: number, count: number): void {
    const digits = this.#digits;
    if (this.#used + count > digits.length) {
      digits.write(randomFillSync(this.#random).toString("hex"), "latin1");
      this.#used = 0;
    }
    let from = this.#used;
    for (let to = at; to < at + count; to++) target[to] = digits[from++]!;
    this.#used = from;
  }
}

//   traceparent: 00-<trace id, 32>-<span id, 16>-01\r\nX-Request-Id: <request id, 32>\r\n<parent span, 16>
//   0               16             49             66     84                           118
const TEMPLATE = Buffer.from(
  `traceparent: 00-${"0".repeat(32)}-${"0".repeat(16)}-01\r\nX-Request-Id: ${"0".repeat(32)}\r\n${"0".repeat(16)}`,
);
const TRACE_AT = 16;
const SPAN_AT = 49;
const FLAGS_AT = 66;
const TRACE_LINE_END = 70;
const REQUEST_ID_AT = 84;
const LINES_END = 118;
const TRACEPARENT_BYTES = 55;
const REQUEST_ID_CHARACTERS_MAX = 128;
const REQUEST_ID_PREFIX = Buffer.from("X-Request-Id: ");
const TRACESTATE_PREFIX = Buffer.from("tracestate: ");

/** IDs of one request; one object per connection, reused. */
export class RequestIds {
  readonly #lines = Buffer.from(TEMPLATE);
  // Views, because whole arrays are copied faster than ranges.
  readonly #sentLines = this.#lines.subarray(0, LINES_END);
  readonly #trace = this.#lines.subarray(TRACE_AT, TRACE_AT + 32);
  #hasParent = false;
  #requestId = "";
  #traceState = "";

  /**
   * Reads the IDs of a request. A valid `traceparent` continues its trace, otherwise a new trace starts; the span is
   * always new. A request ID of up to 128 visible ASCII characters is kept. Otherwise the request ID is the trace ID if
   * the request starts the trace, and random if not.
   */
  read(fields: FieldBlock, pool: HexPool): void {
    const line = fields.first(Known.Traceparent);
    this.#hasParent = line !== -1 && fields.next(line) === -1 && this.#readParent(fields, line);
    this.#traceState = "";
    if (this.#hasParent) {
      if (fields.has(Known.Tracestate)) {
        this.#traceState = normalizeTraceState(joinLines(fields, Known.Tracestate));
      }
    } else {
      pool.take(this.#lines, TRACE_AT, 32);
      this.#lines[FLAGS_AT] = 0x30;
      this.#lines[FLAGS_AT + 1] = 0x31;
    }
    pool.take(this.#lines, SPAN_AT, 16);
    this.#requestId = fields.has(Known.XRequestId) ? readRequestId(fields) : "";
    if (this.#requestId !== "") return;
    if (this.#hasParent) pool.take(this.#lines, REQUEST_ID_AT, 32);
    else this.#lines.set(this.#trace, REQUEST_ID_AT);
  }

  /** Writes the fields for the upstream. */
  write(writer: HeadWriter): void {
    if (this.#requestId === "") {
      writer.raw(this.#sentLines);
    } else {
      writer.range(this.#lines, 0, TRACE_LINE_END);
      writer.fieldAfter(REQUEST_ID_PREFIX, this.#requestId);
    }
    if (this.#traceState !== "") writer.fieldAfter(TRACESTATE_PREFIX, this.#traceState);
  }

  /** 32 lower-case hex digits. */
  get traceId(): string {
    return this.#lines.toString("latin1", TRACE_AT, TRACE_AT + 32);
  }

  /** 16 lower-case hex digits: the span ID of this request. */
  get spanId(): string {
    return this.#lines.toString("latin1", SPAN_AT, SPAN_AT + 16);
  }

  /** The caller's span ID, "" if the trace starts here. */
  get parentSpanId(): string {
    return this.#hasParent ? this.#lines.toString("latin1", LINES_END) : "";
  }

  get traceState(): string {
    return this.#traceState;
  }

  /** True if the trace is sampled; traces that start here always are. */
  get isSampled(): boolean {
    return (hexDigit(this.#lines[FLAGS_AT + 1]!) & 1) === 1;
  }

  /** True if the request ID is the trace ID: the request starts the trace and has no ID of its own. */
  get isNamedByTrace(): boolean {
    return this.#requestId === "" && !this.#hasParent;
  }

  /** Writes the trace ID at `at`: 32 lower-case hex digits. */
  copyTraceId(target: Uint8Array, at: number): void {
    target.set(this.#trace, at);
  }

  get requestId(): string {
    return this.#requestId === ""
      ? this.#lines.toString("latin1", REQUEST_ID_AT, REQUEST_ID_AT + 32)
      : this.#requestId;
  }

  // Section 3.2: version 00 has exactly four parts, later versions may append more, ff is invalid.
  #readParent(fields: FieldBlock, line: number): boolean {
    const { bytes } = fields;
    const start = fields.valueStart(line);
    const length = fields.valueEnd(line) - start;
    if (length < TRACEPARENT_BYTES) return false;
    const isVersionZero = bytes[start] === 0x30 && bytes[start + 1] === 0x30;
    if (
      length > TRACEPARENT_BYTES &&
      (isVersionZero || bytes[start + TRACEPARENT_BYTES] !== 0x2d)
    ) {
      return false;
    }
    if (bytes[start] === 0x66 && bytes[start + 1] === 0x66) return false;
    for (const dash of [2, 35, 52]) if (bytes[start + dash] !== 0x2d) return false;
    if (!isHex(bytes, start, 2) || !isHex(bytes, start + 53, 2)) return false;
    if (!isId(bytes, start + 3, 32) || !isId(bytes, start + 36, 16)) return false;
    bytes.copy(this.#lines, TRACE_AT, start + 3, start + 35);
    bytes.copy(this.#lines, LINES_END, start + 36, start + 52);
    // Only the flags `sampled` and `random` are defined; all others must be sent as 0.
    this.#lines[FLAGS_AT] = 0x30;
    this.#lines[FLAGS_AT + 1] = 0x30 + (hexDigit(bytes[start + 54]!) & 3);
    return true;
  }
}

function readRequestId(fields: FieldBlock): string {
  const line = fields.first(Known.XRequestId);
  const start = fields.valueStart(line);
  const end = fields.valueEnd(line);
  if (end - start > REQUEST_ID_CHARACTERS_MAX || fields.next(line) !== -1) return "";
  for (let at = start; at < end; at++) {
    const byte = fields.bytes[at]!;
    if (byte <= 0x20 || byte >= 0x7f) return "";
  }
  return fields.bytes.toString("latin1", start, end);
}

function isHex(bytes: Uint8Array, start: number, count: number): boolean {
  for (let at = start; at < start + count; at++) if (hexDigit(bytes[at]!) === -1) return false;
  return true;
}

function isId(bytes: Uint8Array, start: number, count: number): boolean {
  let isZero = true;
  for (let at = start; at < start + count; at++) {
    const digit = hexDigit(bytes[at]!);
    if (digit === -1) return false;
    if (digit !== 0) isZero = false;
  }
  return !isZero;
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  return byte >= 0x61 && byte <= 0x66 ? byte - 0x57 : -1;
}
