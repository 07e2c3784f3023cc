// The incremental, strict parser of request heads (RFC 9112 §2 to §6). It never repairs malformed heads.
import { CR, HEX, LF, PATH, PERCENT, QUERY, QUESTION, SLASH, SP, TAB, TOKEN } from "./bytes.ts";
import { hasPort, isAuthority, isSameAuthority } from "./authority.ts";
import { FieldBlock } from "./field-block.ts";
import {
  checkTransferEncoding,
  expectsContinue,
  hasFramingAlias,
  Option,
  readConnection,
  readContentLength,
} from "./framing.ts";
import { HeadBuffer } from "./head-buffer.ts";
import { Known } from "./known-fields.ts";
import { Method, type MethodId, findMethod, nameOfMethod } from "./methods.ts";
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
import { readAbsoluteTarget } from "./target.ts";

const NO_BYTES = Buffer.alloc(0);
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
const VERSION_TEXT = Buffer.from("HTTP/1.");

/** The form of a request target (RFC 9112 §3.2). */
export const TargetForm = { Origin: 0, Absolute: 1, Authority: 2, Asterisk: 3 } as const;

export type TargetFormKind = (typeof TargetForm)[keyof typeof TargetForm];

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
export class RequestParser {
  /** The buffer of all ranges: the caller's chunk or the collected bytes. */
  bytes: Buffer = NO_BYTES;
  /** Offset after the head in the chunk passed to `execute`. */
  next = 0;
  /** Reason for the refusal; the same object until `reset`. */
  refusal: Refusal | null = null;

  /** Start of the request line in `bytes`. */
  headStart = 0;
  /** End of the head in `bytes`, after its closing CRLF. */
  headEnd = 0;
  /** `Other` until the method has been read. */
  methodId: MethodId = Method.Other;
  methodEnd = 0;
  targetForm: TargetFormKind = TargetForm.Origin;
  targetStart = 0;
  targetEnd = 0;
  /** Path of origin and absolute form; empty for `http://host`, which is forwarded as `/`. */
  pathStart = 0;
  pathEnd = 0;
  /** First byte after `?`, or -1 without a query. The query ends at `targetEnd`. */
  queryStart = -1;
  /** Authority of absolute and authority form; -1 in other forms. */
  authorityStart = -1;
  authorityEnd = -1;
  /** 1 for HTTP/1.1, 0 for HTTP/1.0. */
  minor: 0 | 1 = 1;
  readonly fields: FieldBlock;

  /** Framing of the content: None, Length or Chunked. */
  framing: FramingKind = Framing.None;
  /** Length of the content if framing is Length, otherwise 0. */
  contentLength = 0;
  /** True if the connection may be reused after this exchange (RFC 9112 §9.3). */
  keepAlive = true;
  /** True if the client waits for 100 (Continue) before it sends the content, even if that is empty. */
  expectContinue = false;
  /** True if Upgrade is present and nominated by Connection in HTTP/1.1. */
  upgrade = false;

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
    this.headBytesMax = limits.headBytesMax ?? HEAD_BYTES_MAX;
    this.targetBytesMax = limits.targetBytesMax ?? TARGET_BYTES_MAX;
    this.knownMethodsOnly = limits.knownMethodsOnly ?? false;
    this.fields = new FieldBlock(limits.fieldsMax ?? FIELDS_MAX);
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
      return this.judge();
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

  /** True if a byte of the next head has arrived: then the connection is not idle. */
  get begun(): boolean {
    return this.state >= METHOD;
  }

  /** Copies a complete head from the caller's chunk, so that its ranges stay valid until `reset`. */
  keep(): void {
    if (this.state === DONE && this.held.length === 0) this.hold(this.bytes, this.headEnd);
  }

  /** The method; an interned string for known ones. */
  get method(): string {
    return (
      nameOfMethod(this.methodId) ?? this.bytes.toString("latin1", this.headStart, this.methodEnd)
    );
  }

  /** The request target as sent. */
  targetString(): string {
    return this.bytes.toString("latin1", this.targetStart, this.targetEnd);
  }

  /** The path as sent, without the query; `""` if it is absent or was refused before its end. */
  pathString(): string {
    return this.bytes.toString("latin1", this.pathStart, this.pathEnd);
  }

  /** The query without `?`; `undefined` if absent. */
  queryString(): string | undefined {
    if (this.queryStart === -1) return undefined;
    return this.bytes.toString("latin1", this.queryStart, this.targetEnd);
  }

  /** The requested host as sent; `undefined` in HTTP/1.0 without one. */
  hostString(): string | undefined {
    if (this.authorityStart === -1) return this.fields.get(Known.Host);
    return this.bytes.toString("latin1", this.authorityStart, this.authorityEnd);
  }

  private hold(source: Buffer, end: number): void {
    const { held } = this;
    const delta = -this.headStart;
    held.append(source, this.headStart, end);
    this.bytes = held.bytes;
    this.at += delta;
    this.headStart = 0;
    this.headEnd += delta;
    this.methodEnd += delta;
    this.targetStart += delta;
    this.targetEnd += delta;
    this.pathStart += delta;
    this.pathEnd += delta;
    if (this.queryStart !== -1) this.queryStart += delta;
    if (this.authorityStart !== -1) {
      this.authorityStart += delta;
      this.authorityEnd += delta;
    }
    this.versionStart += delta;
    this.fields.rebase(held.bytes, delta);
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
      const refusal = this.readOtherTarget(bytes);
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

  private readOtherTarget(bytes: Buffer): Refusal | null {
    const { targetStart, targetEnd, methodId } = this;
    this.pathStart = targetStart;
    this.pathEnd = targetStart;
    if (methodId === Method.CONNECT) {
      this.targetForm = TargetForm.Authority;
      this.authorityStart = targetStart;
      this.authorityEnd = targetEnd;
      return null;
    }
    if (targetEnd - targetStart === 1 && bytes[targetStart] === 0x2a) {
      this.targetForm = TargetForm.Asterisk;
      return null;
    }
    const parts = readAbsoluteTarget(bytes, targetStart, targetEnd);
    if (parts === null) return refusals.bad_target;
    this.targetForm = TargetForm.Absolute;
    this.authorityStart = parts.authorityStart;
    this.authorityEnd = parts.authorityEnd;
    this.pathStart = parts.authorityEnd;
    this.pathEnd = parts.pathEnd;
    this.queryStart = parts.queryStart;
    return isPercentEncoded(bytes, this.pathStart, this.pathEnd) ? null : refusals.bad_percent;
  }

  private judge(): ParseStatus {
    const refusal = this.judgeTarget() ?? this.judgeConnection() ?? this.judgeFraming();
    return refusal === null ? Parse.Complete : this.refuse(refusal);
  }

  private judgeTarget(): Refusal | null {
    const { fields, bytes } = this;
    if (this.targetForm === TargetForm.Asterisk && this.methodId !== Method.OPTIONS) {
      return refusals.bad_target;
    }
    if (this.authorityStart !== -1) {
      if (!isAuthority(bytes, this.authorityStart, this.authorityEnd)) return refusals.bad_host;
      const isConnect = this.targetForm === TargetForm.Authority;
      if (isConnect && !hasPort(bytes, this.authorityStart, this.authorityEnd)) {
        return refusals.bad_target;
      }
    }
    const host = fields.first(Known.Host);
    if (host === -1) return this.minor === 0 ? null : refusals.host_missing;
    if (fields.next(host) !== -1) return refusals.host_repeated;
    const start = fields.valueStart(host);
    const end = fields.valueEnd(host);
    if (!isAuthority(bytes, start, end)) return refusals.bad_host;
    if (
      this.authorityStart !== -1 &&
      !isSameAuthority(bytes, this.authorityStart, this.authorityEnd, start, end)
    ) {
      return refusals.host_mismatch;
    }
    return null;
  }

  private judgeConnection(): Refusal | null {
    const { fields } = this;
    const options = fields.has(Known.Connection) ? readConnection(fields) : 0;
    if (typeof options !== "number") return options;
    this.keepAlive =
      (options & Option.Close) === 0 && (this.minor === 1 || (options & Option.KeepAlive) !== 0);
    this.upgrade =
      this.minor === 1 && (options & Option.Upgrade) !== 0 && fields.has(Known.Upgrade);
    return null;
  }

  private judgeFraming(): Refusal | null {
    const { fields } = this;
    this.framing = Framing.None;
    this.contentLength = 0;
    this.expectContinue = false;
    if (hasFramingAlias(fields)) return refusals.alias_of_framing_field;
    if (fields.has(Known.TransferEncoding)) {
      if (this.minor === 0) return refusals.transfer_encoding_in_1_0;
      if (fields.has(Known.ContentLength)) return refusals.length_and_chunked;
      const refusal = checkTransferEncoding(fields);
      if (refusal !== null) return refusal;
      this.framing = Framing.Chunked;
    } else if (fields.has(Known.ContentLength)) {
      const length = readContentLength(fields);
      if (length === -3) return refusals.content_length_repeated;
      if (length < 0) return refusals.bad_content_length;
      if (length > 0) this.framing = Framing.Length;
      this.contentLength = length;
    }
    // RFC 9110 §10.1.1: an expectation in HTTP/1.0 is ignored.
    if (this.minor === 1 && fields.has(Known.Expect) && expectsContinue(fields)) {
      this.expectContinue = this.framing !== Framing.None || fields.has(Known.ContentLength);
    }
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

function isPercentEncoded(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    if (bytes[at] !== PERCENT) continue;
    if (at + 2 >= end || HEX[bytes[at + 1]!] === 0xff || HEX[bytes[at + 2]!] === 0xff) return false;
  }
  return true;
}
