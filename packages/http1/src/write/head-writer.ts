// Builds heads, followed by the first body bytes, in one scratch buffer that is sent in one write.
import { ASTERISK, COLON, CR, LF, PATH, SLASH, SP, TOKEN, VALUE } from "../parse/bytes.ts";
import type { FieldBlock } from "../parse/field-block.ts";
import type { RequestHead, ResponseHead } from "../parse/heads.ts";
import { Method } from "../parse/methods.ts";
import { appendBytes, appendDecimal, appendRange } from "./append-bytes.ts";
import type { HttpDate } from "./http-date.ts";
import { statusLineOf } from "./status-line.ts";

const SCRATCH_BYTES = 65_536;
const BYTES_MAX = 1_048_576;
const KEPT_VIEW_BYTES_MAX = 2_048;
const NO_VIEWS: readonly undefined[] = Array.from({ length: KEPT_VIEW_BYTES_MAX });
const HYPHEN = 0x2d;
const UNDERSCORE = 0x5f;
const REQUEST_LINE_END = Buffer.from(" HTTP/1.1\r\n");
const STATUS_LINE_START = Buffer.from("HTTP/1.1 ");
const CONNECTION_CLOSE = Buffer.from("Connection: close\r\n");
const CONNECTION_KEEP_ALIVE = Buffer.from("Connection: keep-alive\r\n");
const CONTENT_LENGTH = Buffer.from("Content-Length: ");

const MESSAGES = {
  bad_field_name: "A field name is empty or contains an invalid character.",
  bad_field_value: "A field value contains an invalid character.",
  bad_path: "A path has no leading slash or contains an invalid character.",
  head_too_large: "A head exceeds the maximum size of the writer.",
} as const;

/** Thrown for a name or value that would break out of its line, or a head beyond the writer's maximum size. */
export class HeadWriteError extends Error {
  readonly code: keyof typeof MESSAGES;

  constructor(code: HeadWriteError["code"]) {
    super(MESSAGES[code]);
    this.name = "HeadWriteError";
    this.code = code;
  }
}

/**
 * One per thread: every head is built in the same scratch buffer.
 *
 * ```ts
 * writer.begin();
 * writer.requestLine(head, null);
 * writer.copyFields(head.fields, cuts);
 * writer.field("X-Request-Id", id);
 * writer.endHead();
 * const sent = socket.write(writer.view());
 * if (!sent) writer.takeOver(); // the socket still references the scratch
 * ```
 *
 * Strings are validated: a `HeadWriteError` is thrown if they would break out of their line. Bytes are trusted, because
 * they have been parsed or prepared before.
 */
export class HeadWriter {
  /** The scratch buffer; `[0, length)` is written. */
  bytes: Buffer;
  length = 0;

  private readonly scratchBytes: number;
  private readonly bytesMax: number;
  /** Cached views of the scratch by length: heads have few different lengths. */
  private views: (Buffer | undefined)[];

  /**
   * @param scratchBytes initial size of the scratch, default 65 536
   * @param bytesMax maximum size of the scratch, default 1 048 576
   */
  constructor(scratchBytes: number = SCRATCH_BYTES, bytesMax: number = BYTES_MAX) {
    this.scratchBytes = scratchBytes;
    this.bytesMax = bytesMax;
    this.bytes = Buffer.allocUnsafeSlow(scratchBytes);
    this.views = makeViews();
  }

  /** Starts a new head. Releases a scratch that has grown. */
  begin(): void {
    this.length = 0;
    if (this.bytes.length > this.scratchBytes) {
      this.replaceScratch(Buffer.allocUnsafeSlow(this.scratchBytes));
    }
  }

  /** A view of the written bytes, valid until `begin`. */
  view(): Buffer {
    const { length } = this;
    if (length >= KEPT_VIEW_BYTES_MAX) return this.bytes.subarray(0, length);
    return (this.views[length] ??= this.bytes.subarray(0, length));
  }

  /** Leaves the scratch to the holder of `view()` and continues with a new one. */
  takeOver(): void {
    this.replaceScratch(Buffer.allocUnsafeSlow(this.scratchBytes));
    this.length = 0;
  }

  /** Appends prepared bytes. */
  raw(prepared: Buffer): void {
    this.reserve(prepared.length);
    this.length = appendBytes(this.bytes, this.length, prepared);
  }

  /** Appends `source[start, end)`. */
  range(source: Buffer, start: number, end: number): void {
    this.reserve(end - start);
    this.length = appendRange(this.bytes, this.length, source, start, end);
  }

  /** Appends one byte. */
  byte(value: number): void {
    this.reserve(1);
    this.bytes[this.length++] = value;
  }

  /** Appends a non-negative integer in decimal digits. */
  number(value: number): void {
    this.reserve(16);
    this.length = appendDecimal(this.bytes, this.length, value);
  }

  /** Appends `name: value CRLF` from strings, which are validated (RFC 9110 §5.1, §5.5); latin1 only. */
  field(name: string, value: string): void {
    if (name.length === 0) throw new HeadWriteError("bad_field_name");
    const lineStart = this.length;
    this.reserve(name.length + value.length + 4);
    this.checked(name, TOKEN, lineStart, "bad_field_name");
    const { bytes } = this;
    bytes[this.length++] = COLON;
    bytes[this.length++] = SP;
    this.checked(value, VALUE, lineStart, "bad_field_value");
    this.lineEnd();
  }

  /** Appends a field with a name prepared as `Name: ` and a value that is validated. */
  fieldAfter(preparedName: Buffer, value: string): void {
    const lineStart = this.length;
    this.raw(preparedName);
    this.reserve(value.length + 2);
    this.checked(value, VALUE, lineStart, "bad_field_value");
    this.lineEnd();
  }

  /** Appends a value or a part of one, validated. For fields that are built in parts. */
  value(value: string): void {
    const lineStart = this.length;
    this.reserve(value.length);
    this.checked(value, VALUE, lineStart, "bad_field_value");
  }

  /** Appends CRLF. */
  lineEnd(): void {
    this.reserve(2);
    this.bytes[this.length++] = CR;
    this.bytes[this.length++] = LF;
  }

  /** Ends the head with an empty line. */
  endHead(): void {
    this.lineEnd();
  }

  /**
   * Appends the HTTP/1.1 request line of a forwarded request in origin form: the method as sent, `path` or else the path
   * as sent (`/` if empty, `*` for `OPTIONS *`), the query as sent.
   */
  requestLine(head: RequestHead, path: string | null): void {
    const { bytes } = head;
    const lineStart = this.length;
    if (path !== null && path.charCodeAt(0) !== SLASH) throw new HeadWriteError("bad_path");
    this.range(bytes, head.headStart, head.methodEnd + 1);
    if (path !== null) {
      this.reserve(path.length);
      this.checked(path, PATH, lineStart, "bad_path");
    } else if (head.pathEnd > head.pathStart) this.range(bytes, head.pathStart, head.pathEnd);
    else if (head.methodId === Method.OPTIONS && head.queryStart === -1) this.byte(ASTERISK);
    else this.byte(SLASH);
    if (head.queryStart !== -1) this.range(bytes, head.queryStart - 1, head.targetEnd);
    this.raw(REQUEST_LINE_END);
  }

  /** Appends an HTTP/1.1 status line with the registered reason phrase. */
  statusLine(status: number): void {
    this.raw(statusLineOf(status));
  }

  /** Appends an HTTP/1.1 status line with the status and reason phrase of a forwarded response. */
  statusLineOf(head: ResponseHead): void {
    this.raw(STATUS_LINE_START);
    this.number(head.status);
    this.byte(SP);
    this.range(head.bytes, head.reasonStart, head.reasonEnd);
    this.lineEnd();
  }

  /**
   * Copies a received field section without the lines whose name is marked in `cuts` (including aliases) and the lines
   * that Connection nominates. Adjacent lines are copied at once.
   */
  copyFields(fields: FieldBlock, cuts: FieldCuts): void {
    const { bytes, count } = fields;
    const { known, other } = cuts;
    let runStart = fields.start;
    for (let index = 0; index < count; index++) {
      const id = fields.knownAt(index);
      if (id === 0) {
        if (!fields.isNominated(index) && (other.length === 0 || !isNamed(fields, index, other)))
          continue;
      } else if (known[id] === 0 && !fields.isNominated(index)) continue;
      const lineStart = fields.nameStart(index);
      if (lineStart > runStart) this.range(bytes, runStart, lineStart);
      runStart = fields.lineEnd(index);
    }
    if (fields.end > runStart) this.range(bytes, runStart, fields.end);
  }

  /** Appends the Date field. */
  date(date: HttpDate, nowMs: number): void {
    this.raw(date.field(nowMs));
  }

  /** Appends `Content-Length`. */
  contentLength(length: number): void {
    this.raw(CONTENT_LENGTH);
    this.number(length);
    this.lineEnd();
  }

  /** Appends Connection for a peer of this minor version, unless it would be the default. */
  connection(keepAlive: boolean, minor: 0 | 1): void {
    if (!keepAlive) this.raw(CONNECTION_CLOSE);
    else if (minor === 0) this.raw(CONNECTION_KEEP_ALIVE);
  }

  /** Appends text whose characters the table allows; otherwise resets the writer to `lineStart` and throws. */
  private checked(
    text: string,
    table: Uint8Array,
    lineStart: number,
    code: HeadWriteError["code"],
  ): void {
    const { bytes } = this;
    let to = this.length;
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      if (unit > 0xff || table[unit] === 0) {
        this.length = lineStart;
        throw new HeadWriteError(code);
      }
      bytes[to++] = unit;
    }
    this.length = to;
  }

  private reserve(size: number): void {
    const needed = this.length + size;
    if (needed > this.bytes.length) this.grow(needed);
  }

  private grow(needed: number): void {
    if (needed > this.bytesMax) {
      throw new HeadWriteError("head_too_large");
    }
    const grown = Buffer.allocUnsafeSlow(
      Math.min(this.bytesMax, Math.max(needed, this.bytes.length * 2)),
    );
    this.bytes.copy(grown, 0, 0, this.length);
    this.replaceScratch(grown);
  }

  private replaceScratch(bytes: Buffer): void {
    this.bytes = bytes;
    this.views = makeViews();
  }
}

/** Lines of a field section that are not copied. Created by `compileCuts`. */
export interface FieldCuts {
  /** 1 for each known field that is cut. */
  readonly known: Uint8Array;
  /** Lower-case names of other fields, with `-` for `_`. */
  readonly other: readonly string[];
}

function makeViews(): (Buffer | undefined)[] {
  return NO_VIEWS.slice();
}

function isNamed(fields: FieldBlock, index: number, names: readonly string[]): boolean {
  const start = fields.nameStart(index);
  const size = fields.nameEnd(index) - start;
  for (const name of names) {
    if (name.length === size && isSameName(fields.bytes, start, name)) return true;
  }
  return false;
}

function isSameName(bytes: Uint8Array, start: number, name: string): boolean {
  for (let at = 0; at < name.length; at++) {
    let byte = bytes[start + at]!;
    if (byte >= 0x41 && byte <= 0x5a) byte |= 0x20;
    else if (byte === UNDERSCORE) byte = HYPHEN;
    if (byte !== name.charCodeAt(at)) return false;
  }
  return true;
}
