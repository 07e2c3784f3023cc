// Recognizes events that differ from an earlier one in their text only: most events of a stream do.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const WORD_BYTES = 4;
/** Longer events are not recognized: the splitter refuses those that are too long. */
const TEXT_BYTES_MAX = 65_536;

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

const NOTHING = new FixedBytes(Buffer.alloc(0));

/** The last event that was scanned, without its text. */
export class EventTemplate {
  #before = NOTHING;
  #after = NOTHING;
  /** False until an event is noted. */
  isKnown = false;
  /** Channel of the text. */
  channel = "";
  /** Place of the text in the bytes in which {@link match} has recognized an event, without its quotation marks. */
  start = 0;
  end = 0;
  /** Place after that event. */
  next = 0;

  /** Notes an event whose only text is `raw[start, end)`, and which says nothing else that matters. */
  learn(raw: Buffer, start: number, end: number, channel: string): void {
    this.#before = new FixedBytes(Buffer.from(raw.subarray(0, start)));
    this.#after = new FixedBytes(Buffer.from(raw.subarray(end)));
    this.channel = channel;
    this.isKnown = true;
  }

  /** Forgets the event. */
  forget(): void {
    this.isKnown = false;
  }

  /** True if an event begins at `at` that has the noted one's bytes around a text of plain ASCII. */
  match(view: DataView, at: number): boolean {
    if (!this.isKnown || !this.#before.isAt(view, at)) return false;
    const start = at + this.#before.bytes.length;
    const limit = Math.min(view.byteLength, start + TEXT_BYTES_MAX);
    let end = start;
    while (end < limit && PLAIN[view.getUint8(end)] === 1) end++;
    if (!this.#after.isAt(view, end)) return false;
    this.start = start;
    this.end = end;
    this.next = end + this.#after.bytes.length;
    return true;
  }

  /** The noted event with another text, as it is written in JSON with its quotation marks. */
  compose(json: string): Buffer {
    const before = this.#before.bytes.length - 1;
    const after = this.#after.bytes;
    const size = Buffer.byteLength(json);
    const event = Buffer.allocUnsafe(before + size + after.length - 1);
    event.set(this.#before.bytes.subarray(0, before));
    event.write(json, before, size, "utf8");
    event.set(after.subarray(1), before + size);
    return event;
  }
}

/** A view of bytes that reads several of them at once. */
export function viewOf(bytes: Buffer): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}
