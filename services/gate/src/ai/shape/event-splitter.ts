// Splits a stream of server-sent events (WHATWG HTML section 9.2.6) into events, without changing their bytes.

/** Longest event in bytes. */
export const EVENT_BYTES_MAX = 1_048_576;
const HELD_BYTES_MIN = 4_096;
const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const DATA = Buffer.from("data");
const NO_BYTES = Buffer.alloc(0);

/** One event. Its buffers are views: copy what is kept. */
export interface StreamEvent {
  /** All its bytes, with the empty line at its end. */
  readonly raw: Buffer;
  /** Its data; empty for comments and the like. */
  readonly data: Buffer;
  /** Place of the data in `raw` if it is one line of it; -1 otherwise. */
  readonly dataStart: number;
}

/** The events of one stream. */
export class EventSplitter {
  /** The present event is longer than {@link EVENT_BYTES_MAX}: nothing more is read. */
  isTooLong = false;
  /** Place in the present piece of the stream after what has been read. */
  at = 0;
  #piece: Buffer = NO_BYTES;
  /** No line of the piece ends with CR; undefined until somebody asks. */
  #isPlain: boolean | undefined;
  /** Bytes of an event that is not complete; its first `#length` bytes are used. */
  #held = NO_BYTES;
  #length = 0;
  /** The line that the last byte belongs to is empty so far. */
  #isLineEmpty = true;
  #isAfterCr = false;

  /** Continues with this piece of the stream, whose events are asked for by {@link next}. */
  begin(piece: Buffer): void {
    this.#piece = piece;
    this.#isPlain = undefined;
    this.at = 0;
  }

  /** True if an event begins at `at`, and may be read there by somebody else, who then moves `at`. */
  get isAtStart(): boolean {
    return this.#length === 0 && this.#isLineEmpty && !this.#isAfterCr && !this.isTooLong;
  }

  /** The next event that is complete; undefined at the end of the piece, of which the rest is kept. */
  next(): StreamEvent | undefined {
    if (this.isTooLong) return undefined;
    const bytes = this.#piece;
    const start = this.at;
    this.#isPlain ??= !this.#isAfterCr && !bytes.includes(CR, start);
    const end = this.#isPlain ? this.#findPlainEnd(bytes, start) : this.#findEnd(bytes, start);
    const size = (end === -1 ? bytes.length : end) - start;
    if (this.#length + size > EVENT_BYTES_MAX) {
      this.isTooLong = true;
      return undefined;
    }
    this.at = start + size;
    if (end !== -1) return readEvent(this.#take(bytes.subarray(start, end)));
    if (size > 0) this.#hold(bytes.subarray(start));
    return undefined;
  }

  /** Adds bytes of the stream, and passes each event that is complete to `onEvent`. */
  push(bytes: Buffer, onEvent: (event: StreamEvent) => void): void {
    this.begin(bytes);
    for (let event = this.next(); event !== undefined; event = this.next()) onEvent(event);
  }

  /** The stream has ended: returns an event without an empty line at its end; undefined if nothing is left. */
  end(): StreamEvent | undefined {
    return this.#length === 0 ? undefined : readEvent(this.#take(NO_BYTES));
  }

  /** Bytes that wait for the end of their event. */
  get heldBytes(): number {
    return this.#length;
  }

  #findEnd(bytes: Buffer, from: number): number {
    for (let at = from; at < bytes.length; at++) if (this.#endsEvent(bytes[at]!)) return at + 1;
    return -1;
  }

  // Without CR, which hardly any provider sends, whole lines are passed over.
  #findPlainEnd(bytes: Buffer, from: number): number {
    let lineStart = from;
    for (;;) {
      const at = bytes.indexOf(LF, lineStart);
      if (at === -1) {
        if (lineStart < bytes.length) this.#isLineEmpty = false;
        return -1;
      }
      const isEnd = at === lineStart && this.#isLineEmpty;
      this.#isLineEmpty = true;
      if (isEnd) return at + 1;
      lineStart = at + 1;
    }
  }

  #endsEvent(byte: number): boolean {
    const isPair = byte === LF && this.#isAfterCr;
    this.#isAfterCr = byte === CR;
    // A line may end with CR LF, whose CR has ended it.
    if (isPair) return false;
    if (byte !== LF && byte !== CR) {
      this.#isLineEmpty = false;
      return false;
    }
    const isEnd = this.#isLineEmpty;
    this.#isLineEmpty = true;
    return isEnd;
  }

  #take(piece: Buffer): Buffer {
    if (this.#length === 0) return piece;
    this.#hold(piece);
    const event = this.#held.subarray(0, this.#length);
    // Bytes that are passed on must not be written again.
    this.#held = NO_BYTES;
    this.#length = 0;
    return event;
  }

  #hold(piece: Buffer): void {
    const needed = this.#length + piece.length;
    if (needed > this.#held.length) {
      const larger = Buffer.allocUnsafe(Math.max(HELD_BYTES_MIN, needed, this.#held.length * 2));
      this.#held.copy(larger, 0, 0, this.#length);
      this.#held = larger;
    }
    piece.copy(this.#held, this.#length);
    this.#length = needed;
  }
}

function readEvent(raw: Buffer): StreamEvent {
  const lines: [start: number, end: number][] = [];
  const isPlain = !raw.includes(CR);
  let at = 0;
  while (at < raw.length) {
    const end = findLineEnd(raw, at, isPlain);
    if (startsWith(raw, at, end, DATA)) {
      let start = at + DATA.length;
      if (raw[start] === COLON) start++;
      if (raw[start] === SPACE && start < end) start++;
      lines.push([Math.min(start, end), end]);
    }
    at = end + 1;
  }
  const [first] = lines;
  if (first === undefined) return { raw, data: NO_BYTES, dataStart: -1 };
  if (lines.length === 1)
    return { raw, data: raw.subarray(first[0], first[1]), dataStart: first[0] };
  const text = lines.map(([start, end]) => raw.subarray(start, end));
  const data = Buffer.concat(
    text.flatMap((line, index) => (index === 0 ? [line] : [NEWLINE, line])),
  );
  return { raw, data, dataStart: -1 };
}

function findLineEnd(raw: Buffer, start: number, isPlain: boolean): number {
  if (isPlain) {
    const at = raw.indexOf(LF, start);
    return at === -1 ? raw.length : at;
  }
  let end = start;
  while (end < raw.length && raw[end] !== LF && raw[end] !== CR) end++;
  return end;
}

const NEWLINE = Buffer.from("\n");

// The name of a line's field ends at a colon or with the line.
function startsWith(raw: Buffer, start: number, end: number, name: Buffer): boolean {
  if (end - start < name.length) return false;
  for (let at = 0; at < name.length; at++) if (raw[start + at] !== name[at]) return false;
  return end - start === name.length || raw[start + name.length] === COLON;
}
