// Recognizes events that differ from an earlier one in their text only: most events of a stream do.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** The last event that was scanned, without its text. */
export class EventTemplate {
  #before: Buffer | undefined;
  #after: Buffer = Buffer.alloc(0);
  /** Channel of the text. */
  channel = "";
  /** Place of the text in the data that {@link match} has recognized, without its quotation marks. */
  start = 0;
  end = 0;

  /** Notes an event whose only text is `data[start, end)`, and which says nothing else that matters. */
  learn(data: Buffer, start: number, end: number, channel: string): void {
    this.#before = Buffer.from(data.subarray(0, start));
    this.#after = Buffer.from(data.subarray(end));
    this.channel = channel;
  }

  /** Forgets the event. */
  forget(): void {
    this.#before = undefined;
  }

  /** True for data that has the noted event's bytes around a text of plain ASCII. */
  match(data: Buffer): boolean {
    const before = this.#before;
    const after = this.#after;
    if (before === undefined || data.length < before.length + after.length) return false;
    const start = before.length;
    const end = data.length - after.length;
    for (let at = start; at < end; at++) {
      const byte = data[at]!;
      if (byte === QUOTE || byte === BACKSLASH || byte < 0x20 || byte > 0x7e) return false;
    }
    if (data.compare(before, 0, start, 0, start) !== 0) return false;
    if (data.compare(after, 0, after.length, end) !== 0) return false;
    this.start = start;
    this.end = end;
    return true;
  }
}
