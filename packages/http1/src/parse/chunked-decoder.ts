// The incremental, strict decoder of the chunked transfer coding (RFC 9112 §7.1) over the caller's buffers.
import {
  CR,
  DQUOTE,
  EQUALS,
  HEX,
  LF,
  BACKSLASH,
  QUOTED,
  SEMICOLON,
  TOKEN,
  VALUE,
} from "./bytes.ts";
import { FieldBlock } from "./field-block.ts";
import { HeadBuffer } from "./head-buffer.ts";
import { ALIAS, Known } from "./known-fields.ts";
import { type Refusal, refusals } from "./refusals.ts";
import { Parse } from "./status.ts";

const SIZE = 0;
const EXTENSION_NAME = 2;
const EXTENSION_REST = 3;
const EXTENSION_VALUE = 4;
const EXTENSION_TOKEN = 5;
const EXTENSION_QUOTED = 6;
const EXTENSION_ESCAPE = 7;
const EXTENSION_CLOSED = 8;
const SIZE_LF = 9;
const DATA = 10;
const DATA_CR = 11;
const DATA_LF = 12;
const TRAILERS = 13;
const DONE = 14;
const REFUSED = 15;

const SIZE_DIGITS_MAX = 16;
const EXTENSION_BYTES_MAX = 4096;
const TRAILER_BYTES_MAX = 8192;
const TRAILER_FIELDS_MAX = 32;

/** Results of `ChunkedDecoder.execute`: the values of `Parse`, or a range of data. */
export const Chunk = { ...Parse, Data: 3 } as const;

/** One of the values of `Chunk`. */
export type ChunkStatus = (typeof Chunk)[keyof typeof Chunk];

/**
 * Decodes chunked content, one after another. Data is returned as ranges of the caller's buffer:
 *
 * ```ts
 * for (;;) {
 *   const status = decoder.execute(chunk, at, end);
 *   if (status === Chunk.Data) use(chunk, decoder.dataStart, decoder.dataEnd);
 *   else if (status === Chunk.Complete) break; // the next message starts at decoder.next
 *   else if (status === Chunk.NeedsMore) break; // the whole chunk was consumed
 *   else refuse(decoder.refusal);
 *   at = decoder.next;
 * }
 * ```
 *
 * `skim` validates without stopping at data: the bytes before `next` are valid chunked content and may be forwarded
 * unchanged, including framing and trailers.
 *
 * Sizes have up to 16 hexadecimal digits and are below 2^53. Extensions are parsed without whitespace, with a limit for
 * the whole content. Trailer fields that frame, route, authenticate or describe the content are refused (RFC 9110
 * §6.5.1), because the next hop may merge trailers into its header.
 */
export class ChunkedDecoder {
  /** Data of the last `execute` that returned `Chunk.Data`. */
  dataStart = 0;
  dataEnd = 0;
  /** Offset in the caller's buffer after the consumed bytes. */
  next = 0;
  /** Number of data bytes so far, without framing. */
  dataBytes = 0;
  refusal: Refusal | null = null;
  /** The trailer fields when complete; their ranges refer to the decoder's own buffer. */
  readonly trailers = new FieldBlock(TRAILER_FIELDS_MAX);

  private readonly held = new HeadBuffer(TRAILER_BYTES_MAX + 1);
  private state = SIZE;
  private size = 0;
  private digits = 0;
  private extensionBytes = 0;

  /** Resets the decoder for the next content. */
  reset(): void {
    this.state = SIZE;
    this.size = 0;
    this.digits = 0;
    this.extensionBytes = 0;
    this.dataBytes = 0;
    this.refusal = null;
    if (this.held.length !== 0) this.held.clear();
    if (this.trailers.count !== 0) this.trailers.begin(0);
  }

  /** True if the next byte starts a chunk: a last chunk can be inserted here. */
  get isBetweenChunks(): boolean {
    return this.state === SIZE && this.digits === 0;
  }

  /** Consumes bytes of `chunk[start, end)` up to the end of the next run of data. */
  execute(chunk: Buffer, start: number, end: number): ChunkStatus {
    let at = start;
    while (at < end) {
      if (this.state === DATA) {
        at = this.takeData(at, end);
        this.next = at;
        return Chunk.Data;
      }
      at = this.takeFraming(chunk, at, end);
      if (this.state >= DONE) break;
    }
    this.next = at;
    return this.outcome();
  }

  /**
   * Validates `chunk[start, end)` without returning ranges of data: `next` is the end of the content or `end`. Bytes of a
   * refused call must not be forwarded.
   */
  skim(chunk: Buffer, start: number, end: number): ChunkStatus {
    let at = start;
    while (at < end && this.state < DONE) {
      at = this.state === DATA ? this.takeData(at, end) : this.takeFraming(chunk, at, end);
    }
    this.next = at;
    return this.outcome();
  }

  /** Like `skim`, but stops at the end of the current chunk: `next` is the offset after it or `end`. */
  skimToChunkEnd(chunk: Buffer, start: number, end: number): ChunkStatus {
    let at = start;
    while (at < end && this.state < DONE && !this.isBetweenChunks) {
      at = this.state === DATA ? this.takeData(at, end) : this.takeFraming(chunk, at, at + 1);
    }
    this.next = at;
    return this.outcome();
  }

  private outcome(): ChunkStatus {
    if (this.state === DONE) return Chunk.Complete;
    return this.state === REFUSED ? Chunk.Refused : Chunk.NeedsMore;
  }

  private takeData(start: number, end: number): number {
    const taken = Math.min(end - start, this.size);
    this.dataStart = start;
    this.dataEnd = start + taken;
    this.dataBytes += taken;
    this.size -= taken;
    if (this.size === 0) this.state = DATA_CR;
    return start + taken;
  }

  private takeFraming(chunk: Buffer, start: number, end: number): number {
    let at = start;
    while (at < end) {
      const byte = chunk[at]!;
      switch (this.state) {
        case SIZE: {
          const digit = HEX[byte]!;
          if (digit !== 0xff) {
            if (++this.digits > SIZE_DIGITS_MAX) return this.refuse(refusals.bad_chunk_size, at);
            this.size = this.size * 16 + digit;
            if (this.size > Number.MAX_SAFE_INTEGER) {
              return this.refuse(refusals.bad_chunk_size, at);
            }
            break;
          }
          if (this.digits === 0) return this.refuse(refusals.bad_chunk_size, at);
          if (byte === CR) this.state = SIZE_LF;
          else if (byte === SEMICOLON) this.state = EXTENSION_NAME;
          else {
            return this.refuse(byte === LF ? refusals.bare_lf : refusals.bad_chunk_size, at);
          }
          break;
        }
        case SIZE_LF:
          if (byte !== LF) return this.refuse(refusals.bare_cr, at);
          if (this.size === 0) {
            this.state = TRAILERS;
            return this.takeTrailers(chunk, at + 1, end);
          }
          this.state = DATA;
          return at + 1;
        case DATA_CR:
          if (byte !== CR) return this.refuse(refusals.bad_chunk_end, at);
          this.state = DATA_LF;
          break;
        case DATA_LF:
          if (byte !== LF) return this.refuse(refusals.bad_chunk_end, at);
          this.state = SIZE;
          this.digits = 0;
          break;
        case TRAILERS:
          return this.takeTrailers(chunk, at, end);
        default:
          if (!this.takeExtension(byte)) return this.refuse(refusals.bad_chunk_extension, at);
          if (++this.extensionBytes > EXTENSION_BYTES_MAX) {
            return this.refuse(refusals.chunk_extensions_too_large, at);
          }
      }
      at++;
    }
    return at;
  }

  /** One byte of `*( ";" name [ "=" ( token / quoted-string ) ] ) CR`. */
  private takeExtension(byte: number): boolean {
    switch (this.state) {
      case EXTENSION_NAME:
        this.state = EXTENSION_REST;
        return TOKEN[byte] !== 0;
      case EXTENSION_REST:
        if (byte === EQUALS) this.state = EXTENSION_VALUE;
        else if (TOKEN[byte] === 0) return this.endExtension(byte);
        return true;
      case EXTENSION_VALUE:
        this.state = byte === DQUOTE ? EXTENSION_QUOTED : EXTENSION_TOKEN;
        return byte === DQUOTE || TOKEN[byte] !== 0;
      case EXTENSION_TOKEN:
        return TOKEN[byte] !== 0 || this.endExtension(byte);
      case EXTENSION_QUOTED:
        if (byte === DQUOTE) this.state = EXTENSION_CLOSED;
        else if (byte === BACKSLASH) this.state = EXTENSION_ESCAPE;
        else return QUOTED[byte] !== 0;
        return true;
      case EXTENSION_ESCAPE:
        this.state = EXTENSION_QUOTED;
        return VALUE[byte] !== 0;
      default:
        return this.endExtension(byte);
    }
  }

  private endExtension(byte: number): boolean {
    if (byte === SEMICOLON) this.state = EXTENSION_NAME;
    else if (byte === CR) this.state = SIZE_LF;
    else return false;
    return true;
  }

  private takeTrailers(chunk: Buffer, start: number, end: number): number {
    const { held, trailers } = this;
    if (held.length === 0) {
      trailers.begin(0);
      if (start === end) return end;
    }
    const before = held.length;
    const taken = held.append(chunk, start, end);
    const status = trailers.execute(
      held.bytes,
      trailers.at,
      Math.min(held.length, TRAILER_BYTES_MAX),
    );
    if (status === Parse.Refused) return this.refuse(trailers.refusal!, start);
    if (status === Parse.NeedsMore) {
      if (held.length > TRAILER_BYTES_MAX) return this.refuse(refusals.trailers_too_large, start);
      return start + taken;
    }
    for (let index = 0; index < trailers.count; index++) {
      if (isForbiddenTrailer(trailers, index)) {
        return this.refuse(refusals.forbidden_trailer, start);
      }
    }
    this.state = DONE;
    return start + (trailers.at - before);
  }

  private refuse(refusal: Refusal, at: number): number {
    this.refusal = refusal;
    this.state = REFUSED;
    return at;
  }
}

function isForbiddenTrailer(trailers: FieldBlock, index: number): boolean {
  const known = trailers.knownAt(index);
  switch (known & ~ALIAS) {
    case Known.Other:
    case Known.Date:
    case Known.Etag:
    case Known.LastModified:
    case Known.Server:
    case Known.Via:
    case Known.XRequestId:
      return false;
    default:
      return true;
  }
}
