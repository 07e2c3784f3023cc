// Splits the bytes of a connection into frames, however they are chunked.
import { readText } from "../../message/message.ts";
import { unescapeHeader } from "./escape.ts";
import type { Frame } from "./frame.ts";
import { StompError } from "./stomp-error.ts";
import type { StompVersion } from "./version.ts";

/*
 *     frame  = command EOL *( name ":" value EOL ) EOL body NUL *( EOL )
 *
 *     ┌─► between frames ──► head ──► body ──┐      skipped EOLs are heart-beats
 *     └──────────────────────────────────────┘
 *
 * Received bytes are kept in one buffer, which grows by doubling: at most twice of what the client has sent is held.
 */

const NUL = 0x00;
const LF = 0x0a;
const CR = 0x0d;
/** A line end, which clients of 1.0 send as the body of CONNECT. */
const LINE_END_BYTES_MAX = 2;
const BUFFER_BYTES_MIN = 4_096;
const EMPTY = Buffer.alloc(0);

/** Limits of a frame. */
export interface FrameLimits {
  headersMax: number;
  /** Longest line of the head, in bytes. */
  lineBytesMax: number;
  headBytesMax: number;
  bodyBytesMax: number;
}

interface Head {
  command: string;
  headers: Map<string, string>;
  /** `content-length`; undefined if the body ends at the first NUL. */
  length: number | undefined;
  bodyBytesMax: number;
}

/** The unprocessed bytes of a connection. */
export class FrameReader {
  readonly #limits: FrameLimits;
  #buffer: Buffer = EMPTY;
  /** False for a chunk of the socket, which is never appended to. */
  #isOwned = false;
  #start = 0;
  #end = 0;
  /** Position from which the end of the line or of the body is searched. */
  #searched = 0;
  #lineStart = 0;
  #lines = 0;
  /** The head of the frame whose body is read. */
  #head: Head | undefined;
  /** The negotiated version; undefined before CONNECT. */
  version: StompVersion | undefined;

  constructor(limits: FrameLimits) {
    this.#limits = limits;
  }

  /** Bytes received and not returned yet. */
  get bytes(): number {
    return this.#end - this.#start;
  }

  /** The largest size that the body of the current frame may have; undefined while its head is read. */
  get bodyBytesMax(): number | undefined {
    if (this.#head === undefined) return undefined;
    return this.#head.length ?? this.#head.bodyBytesMax;
  }

  /** Adds `bytes[0, length)`; copies them if they are `shared` with later reads. */
  push(bytes: Buffer, length = bytes.length, isShared = false): void {
    const held = this.bytes;
    if (held === 0 && !isShared) {
      this.#rebase(bytes, length);
      return;
    }
    if (!this.#isOwned || this.#end + length > this.#buffer.length) {
      // Not compacted in place: bodies of earlier frames may still refer to the buffer.
      const grown = Buffer.allocUnsafeSlow(Math.max(BUFFER_BYTES_MIN, 2 * (held + length)));
      this.#buffer.copy(grown, 0, this.#start, this.#end);
      this.#rebase(grown, held);
      this.#isOwned = true;
    }
    bytes.copy(this.#buffer, this.#end, 0, length);
    this.#end += length;
  }

  /** Removes and returns the next frame; undefined if it is incomplete. Throws a `StompError`. */
  next(): Frame | undefined {
    this.#head ??= this.#readHead();
    return this.#head === undefined ? undefined : this.#readBody(this.#head);
  }

  /** Replaces the buffer by one whose first `held` bytes are the current ones. */
  #rebase(buffer: Buffer, held: number): void {
    this.#searched -= this.#start;
    this.#lineStart -= this.#start;
    this.#isOwned = false;
    this.#buffer = buffer;
    this.#start = 0;
    this.#end = held;
  }

  get #allowsCr(): boolean {
    return this.version === undefined || this.version === "1.2";
  }

  #skipLineEnds(): void {
    let at = this.#start;
    while (at < this.#end) {
      const byte = this.#buffer[at];
      if (byte === LF) at++;
      else if (byte === CR && this.#allowsCr && at + 1 < this.#end) {
        if (this.#buffer[at + 1] !== LF) break;
        at += 2;
      } else break;
    }
    if (at === this.#start) return;
    this.#start = at;
    this.#searched = at;
    this.#lineStart = at;
  }

  #readHead(): Head | undefined {
    if (this.#lines === 0) this.#skipLineEnds();
    for (;;) {
      const lineEnd = this.#findLineEnd();
      if (lineEnd === undefined) return undefined;
      const isEmpty =
        lineEnd === this.#lineStart ||
        (lineEnd === this.#lineStart + 1 && this.#buffer[this.#lineStart] === CR && this.#allowsCr);
      this.#searched = lineEnd + 1;
      if (isEmpty) return this.#endHead(lineEnd);
      this.#lineStart = lineEnd + 1;
      this.#lines++;
      if (this.#lines > this.#limits.headersMax + 1) {
        throw new StompError("too-large", `a frame has ${this.#limits.headersMax} headers at most`);
      }
    }
  }

  #findLineEnd(): number | undefined {
    const { lineBytesMax, headBytesMax } = this.#limits;
    const found = this.#find(LF);
    const end = found ?? this.#end;
    if (this.#buffer.subarray(this.#searched, end).includes(NUL)) {
      throw new StompError(
        "malformed",
        "a NUL within the head of a frame: its empty line is missing",
      );
    }
    if (end - this.#lineStart > lineBytesMax) {
      throw new StompError("too-large", `a header line has ${lineBytesMax} bytes at most`);
    }
    if (end - this.#start > headBytesMax) {
      throw new StompError(
        "too-large",
        `the headers of a frame have ${headBytesMax} bytes at most`,
      );
    }
    this.#searched = end;
    return found;
  }

  #endHead(lineEnd: number): Head {
    const bytes = this.#buffer.subarray(this.#start, this.#lineStart);
    this.#start = lineEnd + 1;
    this.#searched = this.#start;
    this.#lineStart = this.#start;
    this.#lines = 0;
    const text = readText(bytes);
    if (text === undefined) throw new StompError("malformed", "headers that are not UTF-8");
    return this.#parseHead(text);
  }

  #parseHead(text: string): Head {
    const lines = text.split("\n");
    // The last line ended as well.
    lines.pop();
    const command = this.#cutCr(lines[0]!);
    const isOpening = command === "CONNECT" || command === "STOMP";
    // CONNECT is read before a version is chosen: it has no escapes, and without accept-version it is of 1.0.
    const version = isOpening ? "1.0" : (this.version ?? "1.0");
    const isOldOpening = isOpening && !/^accept-version:/m.test(text);
    const isTrimmed = this.version === "1.0" || isOldOpening;
    const headers = new Map<string, string>();
    for (let index = 1; index < lines.length; index++) {
      const line = this.#cutCr(lines[index]!);
      const colon = line.indexOf(":");
      if (colon <= 0) {
        throw new StompError("malformed", `a header line without a name or colon: ${quote(line)}`);
      }
      const name = unescapeHeader(line.slice(0, colon), version);
      const value = unescapeHeader(line.slice(colon + 1), version);
      const key = isTrimmed ? name.trim() : name;
      if (!headers.has(key)) headers.set(key, isTrimmed ? value.trim() : value);
    }
    // CONNECT has no body; clients that are not authenticated get no memory for one.
    const connectBytesMax = isOldOpening ? LINE_END_BYTES_MAX : 0;
    const bodyBytesMax = this.version === undefined ? connectBytesMax : this.#limits.bodyBytesMax;
    const length = this.#readLength(headers.get("content-length"), bodyBytesMax);
    return { command, headers, length, bodyBytesMax };
  }

  #cutCr(line: string): string {
    if (!line.includes("\r") || !this.#allowsCr) return line;
    const cut = line.endsWith("\r") ? line.slice(0, -1) : line;
    if (cut.includes("\r")) {
      throw new StompError("malformed", `a carriage return within the line ${quote(line)}`);
    }
    return cut;
  }

  #readLength(text: string | undefined, bytesMax: number): number | undefined {
    if (text === undefined) return undefined;
    if (!/^\d{1,15}$/.test(text)) {
      throw new StompError("malformed", `content-length is no number of bytes: ${quote(text)}`);
    }
    const length = Number(text);
    if (length > bytesMax) throw this.#createBodyError();
    return length;
  }

  #readBody(head: Head): Frame | undefined {
    const end = this.#findBodyEnd(head);
    if (end === undefined) return undefined;
    let body = this.#buffer.subarray(this.#start, end);
    if (this.version === undefined && body.length > 0) {
      if (!/^\r?\n$/.test(body.toString("latin1"))) throw this.#createBodyError();
      body = EMPTY;
    }
    this.#start = end + 1;
    this.#searched = this.#start;
    this.#lineStart = this.#start;
    this.#head = undefined;
    // Idle connections hold no memory.
    if (this.#start === this.#end) this.#rebase(EMPTY, 0);
    return { command: head.command, headers: head.headers, body };
  }

  #findBodyEnd({ length, bodyBytesMax }: Head): number | undefined {
    if (length !== undefined) {
      const end = this.#start + length;
      if (end >= this.#end) return undefined;
      if (this.#buffer[end] === NUL) return end;
      throw new StompError("malformed", `no NUL follows the ${length} bytes of content-length`);
    }
    const found = this.#find(NUL);
    const end = found ?? this.#end;
    if (end - this.#start > bodyBytesMax) throw this.#createBodyError();
    this.#searched = end;
    return found;
  }

  /** The first position of a byte that has not been searched yet. */
  #find(byte: number): number | undefined {
    const found = this.#buffer.subarray(this.#searched, this.#end).indexOf(byte);
    return found < 0 ? undefined : this.#searched + found;
  }

  #createBodyError(): StompError {
    const bytesMax = this.version === undefined ? 0 : this.#limits.bodyBytesMax;
    return new StompError("too-large", `the body of a frame has ${bytesMax} bytes at most`);
  }
}

function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
