// Scans a request target once: validates it, normalizes it if needed, and marks where a prefix may end.

/** Maximum number of marks per path: prefixes of more than 126 segments never match. */
const MARKS_MAX = 256;

/** Initial value of the hash over path bytes. */
const HASH_SEED = 0x811c9dc5 | 0;

const SLASH = 0x2f;
const DOT = 0x2e;
const PERCENT = 0x25;
const QUESTION = 0x3f;
const BACKSLASH = 0x5c;
const SEMICOLON = 0x3b;

// Bytes of a path that never need normalization; not `/` and `;`, because the next byte matters.
const PLAIN = makeTable(
  (byte) =>
    byte > 0x20 && byte !== 0x7f && byte !== 0x23 && ![0x25, 0x2f, 0x3b, 0x3f, 0x5c].includes(byte),
);
const UNRESERVED = makeTable((byte) => /[A-Za-z0-9._~-]/.test(String.fromCharCode(byte)));

/** Adds one byte to the hash of a path (FNV-1a). */
function addToHash(hash: number, byte: number): number {
  return Math.imul(hash ^ byte, 0x01000193);
}

/** Reason why a target is refused with 400; the caller decides on `encoded-separator`, which raw routes accept. */
export type PathFault =
  | "not-origin-form"
  | "bad-percent-encoding"
  | "encoded-nul"
  | "backslash"
  | "bad-character"
  | "climbs-above-root"
  | "path-parameter-on-dot-segment"
  | "encoded-separator";

/**
 * The path of one request. One object serves all requests of a thread.
 *
 * Normalization decodes percent-encoded unreserved characters, converts other escapes to upper case and removes dot
 * segments (RFC 3986 section 6.2.2). It also merges runs of `/`, so that `//admin` cannot bypass a rule for `/admin`.
 * The query is unchanged. `%2F` and `%5C` are kept and set `hasEncodedSeparator`.
 */
export class PathScan {
  /** Holds the normalized path: the caller's buffer or a scratch buffer. */
  bytes: Uint8Array = new Uint8Array(0);
  /** The normalized path is `bytes[start, end)`. */
  start = 0;
  end = 0;
  /** The path as sent is `sent[sentStart, sentEnd)`; the query follows up to `targetEnd`. */
  sent: Uint8Array = this.bytes;
  sentStart = 0;
  sentEnd = 0;
  targetEnd = 0;
  /** True if the path was sent in normalized form and needs no rewriting. */
  clean = true;
  hasEncodedSeparator = false;
  /** True if a segment has parameters: text after a `;`. */
  hasParameter = false;
  /** Number of marks: lengths at which a prefix may end, ascending, each with the hash of the bytes before it. */
  marks = 0;
  readonly markLengths = new Int32Array(MARKS_MAX);
  readonly markHashes = new Int32Array(MARKS_MAX);
  #scratch = Buffer.allocUnsafe(4096);

  /**
   * Scans the origin-form target `bytes[start, end)`. Returns null or the fault. Marks are set up to `prefixBytesMax`,
   * the length of the longest prefix in the table.
   */
  read(bytes: Uint8Array, start: number, end: number, prefixBytesMax: number): PathFault | null {
    if (start === end || bytes[start] !== SLASH) return "not-origin-form";
    this.sent = bytes;
    this.sentStart = start;
    this.targetEnd = end;
    this.hasEncodedSeparator = false;
    this.hasParameter = false;
    this.bytes = bytes;
    this.start = start;
    if (this.#markClean(bytes, start, end, prefixBytesMax)) {
      this.clean = true;
      this.sentEnd = this.end;
      return null;
    }
    const fault = this.#normalize(bytes, start, end, prefixBytesMax);
    this.clean = fault === null && this.#isAsSent();
    return fault;
  }

  /** The normalized path as text. */
  readPath(): string {
    return readLatin1(this.bytes, this.start, this.end);
  }

  /** The normalized path without segment parameters, and without the empty segments that they leave. */
  readBarePath(): Buffer {
    const bare = this.readPath()
      .replaceAll(/;[^/]*/g, "")
      .replaceAll(/\/{2,}/g, "/");
    return Buffer.from(bare, "latin1");
  }

  /** The normalized path followed by the query as sent. */
  readTarget(): string {
    return this.readPath() + readLatin1(this.sent, this.sentEnd, this.targetEnd);
  }

  /**
   * True if the path as sent may be forwarded raw below a prefix of `prefixLength` bytes: it literally starts with the
   * prefix, and the rest does not climb above the prefix when decoded.
   */
  isRawSafe(prefixLength: number): boolean {
    if (!this.startsAsSent(prefixLength)) return false;
    return !climbsOnceDecoded(readLatin1(this.sent, this.sentStart + prefixLength, this.sentEnd));
  }

  /** True if the first `prefixLength` bytes were sent in normalized form. */
  startsAsSent(prefixLength: number): boolean {
    if (this.sentEnd - this.sentStart < prefixLength) return false;
    for (let at = 0; at < prefixLength; at++) {
      if (this.sent[this.sentStart + at] !== this.bytes[this.start + at]) return false;
    }
    return true;
  }

  #isAsSent(): boolean {
    if (this.end - this.start !== this.sentEnd - this.sentStart) return false;
    for (let at = this.start; at < this.end; at++) {
      if (this.bytes[at] !== this.sent[this.sentStart + at - this.start]) return false;
    }
    return true;
  }

  // One pass for the common case. Returns false as soon as a byte needs the slow path.
  #markClean(bytes: Uint8Array, start: number, end: number, prefixBytesMax: number): boolean {
    let hash = addToHash(HASH_SEED, SLASH);
    let marks = 1;
    this.markLengths[0] = 1;
    this.markHashes[0] = hash;
    let at = start + 1;
    let afterSlash = true;
    for (; at < end; at++) {
      const byte = bytes[at]!;
      if (PLAIN[byte] === 1) {
        if (afterSlash) {
          if (byte === DOT) return false;
          afterSlash = false;
        }
        hash = Math.imul(hash ^ byte, 0x01000193);
        continue;
      }
      if (byte === QUESTION) break;
      if (byte !== SLASH || afterSlash) return false;
      afterSlash = true;
      const length = at - start;
      if (length > prefixBytesMax || marks > MARKS_MAX - 3) {
        hash = Math.imul(hash ^ byte, 0x01000193);
        continue;
      }
      this.markLengths[marks] = length;
      this.markHashes[marks++] = hash;
      hash = Math.imul(hash ^ byte, 0x01000193);
      this.markLengths[marks] = length + 1;
      this.markHashes[marks++] = hash;
    }
    if (!afterSlash && at - start <= prefixBytesMax) {
      this.markLengths[marks] = at - start;
      this.markHashes[marks++] = hash;
    }
    this.marks = marks;
    this.end = at;
    return true;
  }

  #normalize(
    bytes: Uint8Array,
    start: number,
    end: number,
    prefixBytesMax: number,
  ): PathFault | null {
    if (this.#scratch.length < end - start) this.#scratch = Buffer.allocUnsafe((end - start) * 2);
    const out = this.#scratch;
    let length = 0;
    let at = start;
    while (at < end && bytes[at] !== QUESTION) {
      // At a `/`: copy one segment including its `/`, then classify it.
      while (at < end && bytes[at] === SLASH) at++;
      const segmentAt = length;
      out[length++] = SLASH;
      for (; at < end && bytes[at] !== SLASH && bytes[at] !== QUESTION; at++) {
        const byte = bytes[at]!;
        if (byte === PERCENT) {
          const value = readEscape(bytes, at, end);
          if (value < 0) return "bad-percent-encoding";
          if (value === 0) return "encoded-nul";
          if (value === SLASH || value === BACKSLASH) this.hasEncodedSeparator = true;
          if (UNRESERVED[value] === 1) {
            out[length++] = value;
          } else {
            out[length++] = PERCENT;
            out[length++] = upperHex(bytes[at + 1]!);
            out[length++] = upperHex(bytes[at + 2]!);
          }
          at += 2;
        } else if (PLAIN[byte] === 1) {
          out[length++] = byte;
        } else if (byte === SEMICOLON) {
          this.hasParameter = true;
          out[length++] = byte;
        } else {
          return byte === BACKSLASH ? "backslash" : "bad-character";
        }
      }
      const last = at >= end || bytes[at] === QUESTION;
      const kind = judgeSegment(out, segmentAt + 1, length);
      if (kind === "parameter") return "path-parameter-on-dot-segment";
      if (kind === "same") {
        length = last ? segmentAt + 1 : segmentAt;
      } else if (kind === "up") {
        if (segmentAt === 0) return "climbs-above-root";
        let parent = segmentAt - 1;
        while (out[parent] !== SLASH) parent--;
        length = last ? parent + 1 : parent;
      }
    }
    this.sentEnd = at;
    if (!this.#markClean(out, 0, length, prefixBytesMax))
      this.#markEscaped(out, length, prefixBytesMax);
    this.bytes = out;
    this.start = 0;
    this.end = length;
    return null;
  }

  // Marks of a normalized path that contains escapes: every byte is hashed, only `/` separates segments.
  #markEscaped(bytes: Uint8Array, end: number, prefixBytesMax: number): void {
    let hash = HASH_SEED;
    let marks = 0;
    for (let at = 0; at < end; at++) {
      const byte = bytes[at]!;
      const isMarked = byte === SLASH && at <= prefixBytesMax && marks < MARKS_MAX - 2;
      if (isMarked && at > 0) {
        this.markLengths[marks] = at;
        this.markHashes[marks++] = hash;
      }
      hash = addToHash(hash, byte);
      if (isMarked) {
        this.markLengths[marks] = at + 1;
        this.markHashes[marks++] = hash;
      }
    }
    if (bytes[end - 1] !== SLASH && end <= prefixBytesMax) {
      this.markLengths[marks] = end;
      this.markHashes[marks++] = hash;
    }
    this.marks = marks;
  }
}

/** The hash of the prefix in a range of bytes, comparable with the hash of a mark. */
export function hashPrefix(bytes: Uint8Array, start = 0, end = bytes.length): number {
  let hash = HASH_SEED;
  for (let at = start; at < end; at++) hash = addToHash(hash, bytes[at]!);
  return hash;
}

function readLatin1(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("latin1");
}

// `..;x` is a dot segment for servers that strip path parameters before they resolve dot segments.
function judgeSegment(
  bytes: Uint8Array,
  start: number,
  end: number,
): "name" | "same" | "up" | "parameter" {
  if (bytes[start] !== DOT || end === start) return "name";
  const dots = bytes[start + 1] === DOT && end > start + 1 ? 2 : 1;
  if (end === start + dots) return dots === 1 ? "same" : "up";
  return bytes[start + dots] === SEMICOLON ? "parameter" : "name";
}

function climbsOnceDecoded(path: string): boolean {
  let depth = 0;
  const decoded = path.replaceAll(/%([0-9A-Fa-f]{2})/g, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  for (const segment of decoded.split(/[/\\]+/)) {
    const name = segment.split(";", 1)[0];
    if (name === "..") depth--;
    else if (name !== "" && name !== ".") depth++;
    if (depth < 0) return true;
  }
  return false;
}

function readEscape(bytes: Uint8Array, at: number, end: number): number {
  if (at + 2 >= end) return -1;
  const high = hexValue(bytes[at + 1]!);
  const low = hexValue(bytes[at + 2]!);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

function hexValue(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

function upperHex(byte: number): number {
  return byte >= 0x61 ? byte - 0x20 : byte;
}

function makeTable(holds: (byte: number) => boolean): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) => (holds(byte) ? 1 : 0));
}
