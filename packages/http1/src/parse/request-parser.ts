// The incremental, strict parser of request heads (RFC 9112 §2 to §6). It never repairs malformed heads.
import { CR, LF, PATH, QUERY, QUESTION, SLASH, SP, TAB, TOKEN } from "./bytes.ts";
import { HeadBuffer } from "./head-buffer.ts";
import { Known } from "./known-fields.ts";
import { Method, findMethod } from "./methods.ts";
import { NO_BYTES, ParsedRequest, TargetForm } from "./parsed-request.ts";
import { type Refusal, refusals } from "./refusals.ts";
import { judgeRequest } from "./request-rules.ts";
import { FIELDS_MAX, HEAD_BYTES_MAX, type HeadLimits, Parse, type ParseStatus } from "./status.ts";
import { isPercentEncoded, readOtherTarget } from "./target.ts";

const EMPTY = 0;
const EMPTY_LF = 1;
const METHOD = 2;
const TARGET = 3;
const PATH_PART = 4;
const QUERY_PART = 5;
const OTHER_TARGET = 6;
const VERSION = 7;
const LINE_END = 8;
const LINE_LF = 9;
const FIELDS = 10;
const DONE = 11;
const REFUSED = 12;

const METHOD_BYTES_MAX = 32;
const TARGET_BYTES_MAX = 16_384;
const EMPTY_LINES_MAX = 2;
const VERSION_BYTES = 8;
const CRLF_BYTES = 2;
const VERSION_TEXT = Buffer.from("HTTP/1.");

/** Limits of a request parser. */
export interface RequestLimits extends HeadLimits {
  /** Maximum bytes of a request target (414). Default 16 384. */
  targetBytesMax?: number;
  /** Refuses methods that are not in `Method` with 501. Default false. */
  knownMethodsOnly?: boolean;
}

/**
 * Parses the heads of one connection. One object per connection, reused:
 *
 * ```ts
 * switch (parser.execute(chunk, at, end)) {
 *   case Parse.Complete:  // read the view; content or the next head starts at chunk[parser.next]
 *   case Parse.NeedsMore: // the whole chunk was consumed
 *   case Parse.Refused:   // respond with parser.refusal, close
 * }
 * // after the content of the request: parser.reset()
 * ```
 *
 * A head in one chunk is not copied: its ranges refer to that chunk, so read them or call `keep` before the chunk is
 * reused. A head in several chunks is collected in a bounded buffer, and scanning continues where it stopped.
 */
export class RequestParser extends ParsedRequest {
  /** Offset after the head in the chunk passed to `execute`. */
  next = 0;
  /** Reason for the refusal; the same object until `reset`. */
  refusal: Refusal | null = null;

  private readonly headBytesMax: number;
  private readonly targetBytesMax: number;
  private readonly knownMethodsOnly: boolean;
  private readonly held: HeadBuffer;
  private state = EMPTY;
  private at = 0;
  private emptyLines = 0;
  private hasPercent = 0;
  private versionStart = 0;

  constructor(limits: RequestLimits = {}) {
    super(limits.fieldsMax ?? FIELDS_MAX);
    this.headBytesMax = limits.headBytesMax ?? HEAD_BYTES_MAX;
    this.targetBytesMax = limits.targetBytesMax ?? TARGET_BYTES_MAX;
    this.knownMethodsOnly = limits.knownMethodsOnly ?? false;
    // One byte more than the maximum proves that a head is too large.
    this.held = new HeadBuffer(this.headBytesMax + 1);
  }

  /** Parses `chunk[start, end)` as the next bytes of the head. */
  execute(chunk: Buffer, start: number, end: number): ParseStatus {
    if (this.state >= DONE) return this.state === DONE ? Parse.Complete : Parse.Refused;
    const { held } = this;
    let status: ParseStatus;
    if (held.length === 0) {
      status = this.scan(chunk, start, end);
      this.next = this.at;
      if (status === Parse.NeedsMore && this.state >= METHOD) this.hold(chunk, end);
    } else {
      const before = held.length;
      held.append(chunk, start, end);
      status = this.scan(held.bytes, this.at, held.length);
      this.next = start + (this.at - before);
    }
    if (status === Parse.Complete) {
      this.state = DONE;
      this.headEnd = this.at;
      const refusal = judgeRequest(this);
      return refusal === null ? Parse.Complete : this.refuse(refusal);
    }
    if (status === Parse.Refused) this.state = REFUSED;
    else this.next = end;
    return status;
  }

  /** Resets the parser for the next head of the connection. */
  reset(): void {
    this.state = EMPTY;
    this.refusal = null;
    this.emptyLines = 0;
    if (this.held.length !== 0) this.held.clear();
    this.bytes = NO_BYTES;
    this.fields.begin(0);
    this.fields.bytes = NO_BYTES;
  }

  /**
   * Adds lines to a complete head, which is kept from now on. False if they cannot just be added: one is malformed, or has a
   * name that the rules of heads know, or the head is too large. The view is not usable then until `reset`.
   */
  append(lines: readonly (readonly [name: string, value: string])[]): boolean {
    const { held, fields } = this;
    if (held.length === 0) this.hold(this.bytes, this.headEnd);
    const from = this.headEnd - CRLF_BYTES;
    // Bytes that have arrived with the end of the head are read elsewhere.
    held.length = from;
    let left = this.headBytesMax - this.headEnd;
    for (const [name, value] of lines) {
      // The separator and CRLF.
      left -= name.length + 2 + value.length + 2;
      if (left < 0) return false;
      held.appendField(name, value);
    }
    held.appendEnd();
    const end = held.length;
    if (held.bytes !== this.bytes) this.rebase(held.bytes, 0);
    const before = fields.count;
    if (fields.execute(held.bytes, from, end) !== Parse.Complete || fields.at !== end) return false;
    // A line break would be one more field.
    if (fields.count !== before + lines.length) return false;
    this.headEnd = end;
    for (let index = before; index < fields.count; index++) {
      if (fields.knownAt(index) !== Known.Other) return false;
    }
    return true;
  }

  /** True if this complete head may have so many more lines, of so many bytes with their separators and ends. */
  hasRoom(lines: number, bytes: number): boolean {
    const { fields } = this;
    return (
      this.headEnd - this.headStart + bytes <= this.headBytesMax &&
      fields.count + lines <= fields.fieldsMax
    );
  }

  /** True if a byte of the next head has arrived: then the connection is not idle. */
  get begun(): boolean {
    return this.state >= METHOD;
  }

  /** Copies a complete head from the caller's chunk, so that its ranges stay valid until `reset`. */
  keep(): void {
    if (this.state === DONE && this.held.length === 0) this.hold(this.bytes, this.headEnd);
  }

  private hold(source: Buffer, end: number): void {
    const { held } = this;
    // Not the negation, which would be -0, and make all positions floating-point numbers.
    const delta = 0 - this.headStart;
    held.append(source, this.headStart, end);
    this.at += delta;
    this.versionStart += delta;
    this.rebase(held.bytes, delta);
  }

  private scan(bytes: Buffer, from: number, end: number): ParseStatus {
    this.bytes = bytes;
    this.at = from;
    if (this.state < METHOD) {
      const status = this.skipEmptyLines(bytes, end);
      if (status !== Parse.Complete) return status;
    }
    const bound = this.headStart + this.headBytesMax;
    const stop = end > bound ? bound : end;
    let status: ParseStatus = Parse.Complete;
    if (this.state < FIELDS) status = this.scanRequestLine(bytes, stop);
    if (status === Parse.Complete) {
      status = this.fields.execute(bytes, this.at, stop);
      this.at = this.fields.at;
      if (status === Parse.Refused) this.refusal = this.fields.refusal;
    }
    if (status === Parse.NeedsMore && stop < end) return this.refuse(refusals.head_too_large);
    return status;
  }

  private skipEmptyLines(bytes: Buffer, end: number): ParseStatus {
    let at = this.at;
    for (; at < end; at++) {
      const byte = bytes[at]!;
      if (this.state === EMPTY_LF) {
        if (byte !== LF) return this.refuse(refusals.bare_cr);
        this.state = EMPTY;
      } else if (byte === CR) {
        if (++this.emptyLines > EMPTY_LINES_MAX) return this.refuse(refusals.leading_empty_lines);
        this.state = EMPTY_LF;
      } else {
        this.headStart = at;
        this.at = at;
        this.methodId = Method.Other;
        this.pathStart = at;
        this.pathEnd = at;
        this.state = METHOD;
        return Parse.Complete;
      }
    }
    this.at = at;
    return Parse.NeedsMore;
  }

  private scanRequestLine(bytes: Buffer, end: number): ParseStatus {
    let at = this.at;
    if (this.state === METHOD) {
      while (at < end && TOKEN[bytes[at]!] !== 0) at++;
      if (at - this.headStart > METHOD_BYTES_MAX) return this.refuse(refusals.method_too_long);
      if (at === end) return this.pause(at);
      if (bytes[at] !== SP || at === this.headStart) return this.refuseLine(bytes[at]!);
      this.methodEnd = at;
      this.methodId = findMethod(bytes, this.headStart, at);
      if (this.methodId === Method.Other && this.knownMethodsOnly) {
        return this.refuse(refusals.method_unknown);
      }
      at++;
      this.targetStart = at;
      this.state = TARGET;
    }
    if (this.state === TARGET) {
      if (at === end) return this.pause(at);
      this.pathStart = at;
      this.pathEnd = at;
      this.queryStart = -1;
      this.authorityStart = -1;
      this.authorityEnd = -1;
      this.hasPercent = 0;
      const byte = bytes[at]!;
      if (byte === SP || byte === TAB) return this.refuse(refusals.bad_request_line);
      const isOrigin = byte === SLASH && this.methodId !== Method.CONNECT;
      this.targetForm = TargetForm.Origin;
      this.state = isOrigin ? PATH_PART : OTHER_TARGET;
    }
    if (this.state < VERSION) {
      const status = this.scanTarget(bytes, at, end);
      if (status !== Parse.Complete) return status;
      at = this.at;
    }
    return this.scanVersion(bytes, at, end);
  }

  private scanTarget(bytes: Buffer, from: number, end: number): ParseStatus {
    let at = from;
    const bound = this.targetStart + this.targetBytesMax + 1;
    const stop = end > bound ? bound : end;
    if (this.state === PATH_PART) {
      let seen = this.hasPercent;
      while (at < stop) {
        const kind = PATH[bytes[at]!]!;
        if (kind === 0) break;
        seen |= kind;
        at++;
      }
      this.hasPercent = seen;
      if (at < stop && bytes[at] === QUESTION) {
        this.pathEnd = at++;
        this.queryStart = at;
        this.state = QUERY_PART;
      }
    }
    if (this.state !== PATH_PART) while (at < stop && QUERY[bytes[at]!] !== 0) at++;
    if (at === bound) return this.refuse(refusals.target_too_long);
    if (at === end) return this.pause(at);
    if (bytes[at] !== SP) return this.refuseTarget(bytes[at]!);
    if (this.state === PATH_PART) this.pathEnd = at;
    this.targetEnd = at;
    this.at = at + 1;
    this.versionStart = at + 1;
    if (this.state === OTHER_TARGET) {
      const refusal = readOtherTarget(this);
      if (refusal !== null) return this.refuse(refusal);
    } else if (
      (this.hasPercent & 2) !== 0 &&
      !isPercentEncoded(bytes, this.pathStart, this.pathEnd)
    ) {
      return this.refuse(refusals.bad_percent);
    }
    this.state = VERSION;
    return Parse.Complete;
  }

  private scanVersion(bytes: Buffer, from: number, end: number): ParseStatus {
    let at = from;
    if (this.state === VERSION) {
      for (let index = at - this.versionStart; index < VERSION_BYTES; index++, at++) {
        if (at === end) return this.pause(at);
        const byte = bytes[at]!;
        if (index === VERSION_BYTES - 1) {
          if (byte < 0x30 || byte > 0x39) return this.refuse(refusals.bad_version);
          if (byte > 0x31) return this.refuse(refusals.version_unsupported);
          this.minor = byte === 0x31 ? 1 : 0;
        } else if (byte !== VERSION_TEXT[index]) {
          return this.refuseVersion(byte, index);
        }
      }
      this.state = LINE_END;
    }
    if (this.state === LINE_END) {
      if (at === end) return this.pause(at);
      if (bytes[at] !== CR) return this.refuseLine(bytes[at]!);
      at++;
      this.state = LINE_LF;
    }
    if (at === end) return this.pause(at);
    if (bytes[at] !== LF) return this.refuse(refusals.bare_cr);
    this.at = at + 1;
    this.fields.begin(at + 1);
    this.state = FIELDS;
    return Parse.Complete;
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

  private refuseLine(byte: number): ParseStatus {
    if (byte === LF) return this.refuse(refusals.bare_lf);
    return this.refuse(refusals.bad_request_line);
  }

  private refuseTarget(byte: number): ParseStatus {
    if (byte === CR || byte === LF) return this.refuse(refusals.version_missing);
    if (byte === TAB) return this.refuse(refusals.bad_request_line);
    return this.refuse(refusals.bad_target);
  }

  private refuseVersion(byte: number, index: number): ParseStatus {
    if (index === 5 && byte >= 0x30 && byte <= 0x39) {
      const isPreface = byte === 0x32 && this.methodId === Method.PRI;
      return this.refuse(isPreface ? refusals.http2_preface : refusals.version_unsupported);
    }
    if (byte === LF) return this.refuse(refusals.bare_lf);
    if (index === 0 && byte !== CR) return this.refuse(refusals.bad_request_line);
    return this.refuse(refusals.bad_version);
  }
}
