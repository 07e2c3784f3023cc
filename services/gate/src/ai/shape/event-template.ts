// Recognizes events that differ from an earlier one in their text, and in numbers that count them: most of a stream do.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const WORD_BYTES = 4;
/** Longer events are not recognized: the splitter refuses those that are too long. */
const TEXT_BYTES_MAX = 65_536;
/** Filler and numbers of up to so many bytes, and digits among them, are no personal data. */
const OTHER_BYTES_MAX = 16;
const DIGITS_MAX = 5;
const COUNT_MAX = 11;

/** 1 for bytes that a text of plain ASCII has, without those that JSON escapes. */
const PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x20 && byte <= 0x7e && byte !== QUOTE && byte !== BACKSLASH ? 1 : 0,
);

/** Fixed bytes, compared four at a time. */
class FixedBytes {
  readonly bytes: Buffer;
  readonly #words: Int32Array;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
    const view = viewOf(bytes);
    this.#words = new Int32Array(Math.floor(bytes.length / WORD_BYTES));
    for (let word = 0; word < this.#words.length; word++)
      this.#words[word] = view.getInt32(word * WORD_BYTES, true);
  }

  isAt(view: DataView, at: number): boolean {
    const { bytes } = this;
    const words = this.#words;
    if (view.byteLength - at < bytes.length) return false;
    // From the end, where events differ: the identifier at their beginning is that of the stream.
    for (let index = bytes.length - 1; index >= words.length * WORD_BYTES; index--)
      if (view.getUint8(at + index) !== bytes[index]) return false;
    for (let word = words.length - 1; word >= 0; word--)
      if (view.getInt32(at + word * WORD_BYTES, true) !== words[word]) return false;
    return true;
  }
}

/** Something in which events that are alike differ. */
export interface Varying {
  readonly start: number;
  readonly end: number;
  /** `text` is what the model has written; `count` and `filler` say nothing that matters. */
  readonly kind: "text" | "count" | "filler";
}

/** An event that was scanned, without what varies. */
export class EventTemplate {
  /** The bytes before each varying part, and after the last one. */
  #fixed: FixedBytes[] = [];
  #kinds: Varying["kind"][] = [];
  /** False until an event is noted. */
  isKnown = false;
  /** Channel of the text. */
  channel = "";
  /** Place of the text in the bytes in which {@link match} has recognized an event, without its quotation marks. */
  start = 0;
  end = 0;
  /** Place after that event. */
  next = 0;

  /** Notes an event that has one text, and says nothing else that matters. `varying` is in the order of the bytes. */
  learn(raw: Buffer, varying: readonly Varying[], channel: string): void {
    const bytes = Buffer.from(raw);
    let at = 0;
    this.#kinds = varying.map(({ kind }) => kind);
    this.#fixed = varying.map(({ start, end }) => {
      const before = bytes.subarray(at, start);
      at = end;
      return new FixedBytes(before);
    });
    this.#fixed.push(new FixedBytes(bytes.subarray(at)));
    this.channel = channel;
    this.isKnown = true;
  }

  /** Forgets the event. */
  forget(): void {
    this.isKnown = false;
  }

  /** True if an event begins at `at` that has the noted one's bytes, but for what varies. Its text is plain ASCII. */
  match(view: DataView, at: number): boolean {
    if (!this.isKnown) return false;
    const fixed = this.#fixed;
    const kinds = this.#kinds;
    let place = at;
    let textStart = -1;
    let textEnd = -1;
    for (let index = 0; index < kinds.length; index++) {
      if (!fixed[index]!.isAt(view, place)) return false;
      place += fixed[index]!.bytes.length;
      const kind = kinds[index]!;
      const end = kind === "text" ? skipText(view, place) : skipOther(view, place, kind);
      if (end === -1) return false;
      if (kind === "text") {
        textStart = place;
        textEnd = end;
      }
      place = end;
    }
    const last = fixed[kinds.length]!;
    if (!last.isAt(view, place)) return false;
    this.start = textStart;
    this.end = textEnd;
    this.next = place + last.bytes.length;
    return true;
  }
}

function skipText(view: DataView, start: number): number {
  const limit = Math.min(view.byteLength, start + TEXT_BYTES_MAX);
  let end = start;
  while (end < limit && PLAIN[view.getUint8(end)] === 1) end++;
  return end;
}

// A number, or letters and digits, that is too short to be personal data: -1 if it could be.
function skipOther(view: DataView, start: number, kind: "count" | "filler"): number {
  const isCount = kind === "count";
  const limit = Math.min(view.byteLength, start + OTHER_BYTES_MAX + 1);
  let digits = 0;
  let end = start;
  for (; end < limit; end++) {
    const byte = view.getUint8(end);
    const isDigit = byte >= 0x30 && byte <= 0x39;
    const lower = byte | 0x20;
    if (!isDigit && (isCount || lower < 0x61 || lower > 0x7a)) break;
    if (isDigit) digits++;
  }
  const isShort = end - start <= OTHER_BYTES_MAX && digits <= (isCount ? COUNT_MAX : DIGITS_MAX);
  return isShort && (!isCount || end > start) ? end : -1;
}

/** An event with another text in place of `raw[start, end)`: as it is written in JSON, with its quotation marks. */
export function replaceText(raw: Buffer, start: number, end: number, json: string): Buffer {
  const size = Buffer.byteLength(json);
  const event = Buffer.allocUnsafe(raw.length - (end - start) - 2 + size);
  raw.copy(event, 0, 0, start - 1);
  event.write(json, start - 1, size, "utf8");
  raw.copy(event, start - 1 + size, end + 1);
  return event;
}

/** A view of bytes that reads several of them at once. */
export function viewOf(bytes: Buffer): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}
