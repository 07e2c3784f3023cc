// Buffers heads that arrive in several pieces: one growable buffer per connection.
import { COLON, CR, LF, SP } from "./bytes.ts";

const FIRST_BYTES = 1024;
const KEPT_BYTES = 4096;
/** Texts of up to so many bytes are written faster one by one than by a call of the buffer. */
const SHORT_BYTES_MAX = 48;
const NO_BYTES = Buffer.alloc(0);

function writeText(bytes: Buffer, text: string, from: number): void {
  if (text.length > SHORT_BYTES_MAX) bytes.write(text, from, "latin1");
  else for (let at = 0; at < text.length; at++) bytes[from + at] = text.charCodeAt(at);
}

/** Doubles its size up to a maximum, so that a head that arrives byte by byte takes linear time. */
export class HeadBuffer {
  bytes: Buffer = NO_BYTES;
  length = 0;
  private readonly bytesMax: number;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** Appends `source[start, end)`, or as much as the maximum allows; returns the number of appended bytes. */
  append(source: Buffer, start: number, end: number): number {
    const taken = Math.min(end - start, this.bytesMax - this.length);
    const needed = this.length + taken;
    this.makeRoom(needed);
    source.copy(this.bytes, this.length, start, start + taken);
    this.length = needed;
    return taken;
  }

  /** Appends a field with its CRLF, for which the maximum has room. Texts are latin1. */
  appendField(name: string, value: string): void {
    const valueAt = this.length + name.length + 2;
    const end = valueAt + value.length;
    this.makeRoom(end + 2);
    const { bytes } = this;
    writeText(bytes, name, this.length);
    bytes[valueAt - 2] = COLON;
    bytes[valueAt - 1] = SP;
    writeText(bytes, value, valueAt);
    this.length = end;
    this.appendEnd();
  }

  /** Appends CRLF, for which the maximum has room. */
  appendEnd(): void {
    const { length } = this;
    this.makeRoom(length + 2);
    this.bytes[length] = CR;
    this.bytes[length + 1] = LF;
    this.length = length + 2;
  }

  private makeRoom(needed: number): void {
    if (needed <= this.bytes.length) return;
    const size = Math.min(this.bytesMax, Math.max(FIRST_BYTES, this.bytes.length * 2, needed));
    const grown = Buffer.allocUnsafeSlow(size);
    this.bytes.copy(grown, 0, 0, this.bytes.length);
    this.bytes = grown;
  }

  /** Empties the buffer; releases a large one to keep idle connections small. */
  clear(): void {
    this.length = 0;
    if (this.bytes.length > KEPT_BYTES) this.bytes = NO_BYTES;
  }
}
