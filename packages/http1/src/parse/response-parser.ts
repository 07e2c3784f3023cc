// The incremental, strict parser of response heads of upstreams (RFC 9112 §4 and §6).
import { CR, LF, NINE, SP, VALUE, ZERO } from "./bytes.ts";
import { FieldBlock } from "./field-block.ts";
import {
  checkTransferEncoding,
  hasFramingAlias,
  Option,
  readConnection,
  readContentLength,
} from "./framing.ts";
import { HeadBuffer } from "./head-buffer.ts";
import { Known } from "./known-fields.ts";
import { Method, type MethodId } from "./methods.ts";
import { type Refusal, refusals } from "./refusals.ts";
import {
  FIELDS_MAX,
  Framing,
  type FramingKind,
  HEAD_BYTES_MAX,
  type HeadLimits,
  Parse,
  type ParseStatus,
} from "./status.ts";

const NO_BYTES = Buffer.alloc(0);
const BEGIN = 0;
const VERSION = 1;
const REASON_SPACE = 3;
const REASON = 4;
const LINE_LF = 5;
const FIELDS = 6;
const DONE = 7;
const REFUSED = 8;

const VERSION_TEXT = Buffer.from("HTTP/1.");
const USUAL_START = Buffer.from("HTTP/1.1 ");
const VERSION_BYTES = 8;
const STATUS_AT = VERSION_BYTES + 1;

/**
 * Parses the response heads of one connection. Call `expect(method)` before each response, because HEAD and CONNECT
 * affect its framing; after an informational head (1xx except 101) call `reset`, which keeps the method. Chunks, ranges
 * and `keep` behave as in `RequestParser`.
 */
export class ResponseParser {
  /** The buffer of all ranges: the caller's chunk or the collected bytes. */
  bytes: Buffer = NO_BYTES;
  /** Offset after the head in the chunk passed to `execute`. */
  next = 0;
  /** Reason for the refusal; the same object until `reset`. A gateway responds with 502. */
  refusal: Refusal | null = null;

  headStart = 0;
  /** End of the head in `bytes`, after its closing CRLF. */
  headEnd = 0;
  /** 100 to 999. */
  status = 0;
  /** The reason phrase; may be empty. */
  reasonStart = 0;
  reasonEnd = 0;
  /** 1 for HTTP/1.1, 0 for HTTP/1.0. */
  minor: 0 | 1 = 1;
  readonly fields: FieldBlock;

  /** Framing of the content for the request's method. */
  framing: FramingKind = Framing.None;
  /**
   * The declared Content-Length, -1 if absent. With framing Length it is the size of the content; with framing None (HEAD,
   * 304) it is the size of the content of a GET.
   */
  contentLength = -1;
  /** True if the connection may be reused after this response. */
  keepAlive = true;
  /** True for a 101. */
  upgrade = false;

  private readonly headBytesMax: number;
  private readonly held: HeadBuffer;
  private state = BEGIN;
  private at = 0;
  private methodId: MethodId = Method.Other;

  constructor(limits: HeadLimits = {}) {
    this.headBytesMax = limits.headBytesMax ?? HEAD_BYTES_MAX;
    this.fields = new FieldBlock(limits.fieldsMax ?? FIELDS_MAX);
    this.held = new HeadBuffer(this.headBytesMax + 1);
  }

  /** True for an informational response, which another one follows. */
  get informational(): boolean {
    return this.status < 200 && this.status !== 101;
  }

  /** Prepares for the response to a request with this method. */
  expect(methodId: MethodId): void {
    this.methodId = methodId;
    this.reset();
  }

  /** Prepares for another head in response to the same request. */
  reset(): void {
    this.state = BEGIN;
    this.refusal = null;
    if (this.held.length !== 0) this.held.clear();
    this.bytes = NO_BYTES;
    this.fields.begin(0);
    this.fields.bytes = NO_BYTES;
  }

  /** True if a byte of the head has arrived. */
  get begun(): boolean {
    return this.state !== BEGIN;
  }

  /** Parses `chunk[start, end)` as the next bytes of the head. */
  execute(chunk: Buffer, start: number, end: number): ParseStatus {
    if (this.state >= DONE) return this.state === DONE ? Parse.Complete : Parse.Refused;
    if (start === end) return Parse.NeedsMore;
    const { held } = this;
    let status: ParseStatus;
    if (held.length === 0) {
      this.headStart = start;
      this.state = VERSION;
      status = this.scan(chunk, start, end);
      this.next = this.at;
      if (status === Parse.NeedsMore) this.hold(chunk, end);
    } else {
      const before = held.length;
      held.append(chunk, start, end);
      status = this.scan(held.bytes, this.at, held.length);
      this.next = start + (this.at - before);
    }
    if (status === Parse.Complete) {
      this.state = DONE;
      this.headEnd = this.at;
      const refusal = this.judge();
      return refusal === null ? Parse.Complete : this.refuse(refusal);
    }
    if (status === Parse.Refused) this.state = REFUSED;
    else this.next = end;
    return status;
  }

  /** Copies a complete head from the caller's chunk, so that its ranges stay valid until `reset`. */
  keep(): void {
    if (this.state === DONE && this.held.length === 0) this.hold(this.bytes, this.headEnd);
  }

  /** The reason phrase as sent. */
  reasonString(): string {
    return this.bytes.toString("latin1", this.reasonStart, this.reasonEnd);
  }

  private hold(source: Buffer, end: number): void {
    const { held } = this;
    // Not the negation, which would be -0, and make all positions floating-point numbers.
    const delta = 0 - this.headStart;
    held.append(source, this.headStart, end);
    this.bytes = held.bytes;
    this.at += delta;
    this.headStart = 0;
    this.headEnd += delta;
    this.reasonStart += delta;
    this.reasonEnd += delta;
    this.fields.rebase(held.bytes, delta);
  }

  private scan(bytes: Buffer, from: number, end: number): ParseStatus {
    this.bytes = bytes;
    this.at = from;
    const bound = this.headStart + this.headBytesMax;
    const stop = end > bound ? bound : end;
    let status: ParseStatus = Parse.Complete;
    if (this.state < FIELDS) status = this.scanStatusLine(bytes, stop);
    if (status === Parse.Complete) {
      status = this.fields.execute(bytes, this.at, stop);
      this.at = this.fields.at;
      if (status === Parse.Refused) this.refusal = this.fields.refusal;
    }
    if (status === Parse.NeedsMore && stop < end) return this.refuse(refusals.head_too_large);
    return status;
  }

  private scanStatusLine(bytes: Buffer, end: number): ParseStatus {
    let at = this.at;
    if (this.state < REASON_SPACE && at === this.headStart && this.takeUsualStart(bytes, at, end)) {
      at += STATUS_AT + 3;
      this.state = REASON_SPACE;
    } else if (this.state < REASON_SPACE) {
      for (let index = at - this.headStart; index < STATUS_AT + 3; index++, at++) {
        if (at === end) return this.pause(at);
        const refusal = this.takeStatusByte(bytes[at]!, index);
        if (refusal !== null) return this.refuse(refusal);
      }
      this.state = REASON_SPACE;
    }
    if (this.state === REASON_SPACE) {
      if (at === end) return this.pause(at);
      // Servers that send no reason phrase often omit the space as well, which is unambiguous.
      if (bytes[at] === SP) at++;
      else if (bytes[at] !== CR) return this.refuse(refusals.bad_status_line);
      this.reasonStart = at;
      this.state = REASON;
    }
    if (this.state === REASON) {
      while (at < end && VALUE[bytes[at]!] !== 0) at++;
      if (at === end) return this.pause(at);
      if (bytes[at] === LF) return this.refuse(refusals.bare_lf);
      if (bytes[at] !== CR) return this.refuse(refusals.bad_status_line);
      this.reasonEnd = at++;
      this.state = LINE_LF;
    }
    if (at === end) return this.pause(at);
    if (bytes[at] !== LF) return this.refuse(refusals.bare_cr);
    this.at = at + 1;
    this.fields.begin(at + 1);
    this.state = FIELDS;
    return Parse.Complete;
  }

  /** Parses `HTTP/1.1 NNN` in one step; other bytes are left to the byte-by-byte parser. */
  private takeUsualStart(bytes: Buffer, at: number, end: number): boolean {
    if (end - at < STATUS_AT + 3) return false;
    for (let index = 0; index < USUAL_START.length; index++) {
      if (bytes[at + index] !== USUAL_START[index]) return false;
    }
    const hundreds = bytes[at + STATUS_AT]! - ZERO;
    const tens = bytes[at + STATUS_AT + 1]! - ZERO;
    const ones = bytes[at + STATUS_AT + 2]! - ZERO;
    if (hundreds < 1 || hundreds > 9 || tens < 0 || tens > 9 || ones < 0 || ones > 9) return false;
    this.minor = 1;
    this.status = hundreds * 100 + tens * 10 + ones;
    return true;
  }

  private takeStatusByte(byte: number, index: number): Refusal | null {
    if (index < VERSION_BYTES - 1) {
      if (byte === VERSION_TEXT[index]) return null;
      const isDigit = byte >= ZERO && byte <= NINE;
      return index === 5 && isDigit ? refusals.version_unsupported : refusals.bad_status_line;
    }
    if (index === VERSION_BYTES) return byte === SP ? null : refusals.bad_status_line;
    if (byte < ZERO || byte > NINE) return refusals.bad_status_line;
    const digit = byte - ZERO;
    if (index === VERSION_BYTES - 1) {
      if (digit > 1) return refusals.version_unsupported;
      this.minor = digit === 1 ? 1 : 0;
      return null;
    }
    if (index === STATUS_AT && digit === 0) return refusals.bad_status_line;
    this.status = index === STATUS_AT ? digit : this.status * 10 + digit;
    return null;
  }

  private judge(): Refusal | null {
    const { fields, status, methodId } = this;
    const options = fields.has(Known.Connection) ? readConnection(fields) : 0;
    if (typeof options !== "number") return options;
    this.upgrade = status === 101;
    const length = readContentLength(fields);
    if (length === -3) return refusals.content_length_repeated;
    if (length === -2) return refusals.bad_content_length;
    if (hasFramingAlias(fields)) return refusals.alias_of_framing_field;
    this.contentLength = length;
    const isChunked = fields.has(Known.TransferEncoding);
    if (isChunked) {
      if (this.minor === 0) return refusals.transfer_encoding_in_1_0;
      if (length !== -1) return refusals.length_and_chunked;
      const refusal = checkTransferEncoding(fields);
      if (refusal !== null) return refusal;
    }
    const isTunnel = methodId === Method.CONNECT && status >= 200 && status < 300;
    if (status < 200 || status === 204) {
      if (isChunked || length > 0) return refusals.body_not_allowed;
    }
    if (status === 101 || isTunnel) this.framing = Framing.Tunnel;
    else if (status < 200 || status === 204 || status === 304 || methodId === Method.HEAD) {
      this.framing = Framing.None;
    } else if (isChunked) this.framing = Framing.Chunked;
    else if (length > 0) this.framing = Framing.Length;
    else this.framing = length === 0 ? Framing.None : Framing.UntilClose;
    this.keepAlive =
      this.framing !== Framing.UntilClose &&
      this.framing !== Framing.Tunnel &&
      (options & Option.Close) === 0 &&
      (this.minor === 1 || (options & Option.KeepAlive) !== 0);
    return null;
  }

  private pause(at: number): ParseStatus {
    this.at = at;
    return Parse.NeedsMore;
  }

  private refuse(refusal: Refusal): ParseStatus {
    this.refusal = refusal;
    this.state = REFUSED;
    return Parse.Refused;
  }
}
