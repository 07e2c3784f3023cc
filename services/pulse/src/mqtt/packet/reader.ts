// Reads the fields of a packet, never past its end.
import { isUtf8 } from "node:buffer";
import { MqttError, REASON } from "./reason-codes.ts";

/** A position in a packet. Every read throws 0x81 when the packet is too short or the value is invalid. */
export class PacketReader {
  readonly #bytes: Buffer;
  readonly #end: number;
  #at: number;

  constructor(bytes: Buffer, at = 0, end = bytes.length) {
    this.#bytes = bytes;
    this.#at = at;
    this.#end = end;
  }

  get remaining(): number {
    return this.#end - this.#at;
  }

  byte(): number {
    return this.#bytes[this.#advance(1)]!;
  }

  uint16(): number {
    return this.#bytes.readUInt16BE(this.#advance(2));
  }

  uint32(): number {
    return this.#bytes.readUInt32BE(this.#advance(4));
  }

  /** A variable byte integer (section 1.5.5), in its shortest form. */
  variable(): number {
    let value = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.byte();
      value |= (byte & 0x7f) << shift;
      if (byte > 0x7f) continue;
      if (byte === 0 && shift > 0) break;
      return value;
    }
    throw new MqttError(REASON.malformed, "a variable byte integer is not valid");
  }

  binary(): Buffer {
    return this.bytes(this.uint16());
  }

  /** A text: valid UTF-8 without U+0000 (section 1.5.4). */
  text(): string {
    const length = this.uint16();
    const from = this.#advance(length);
    const bytes = this.#bytes.subarray(from, from + length);
    if (!isUtf8(bytes) || bytes.includes(0)) {
      throw new MqttError(REASON.malformed, "a text is not UTF-8 without U+0000");
    }
    return bytes.toString("utf8");
  }

  bytes(length: number): Buffer {
    const from = this.#advance(length);
    return this.#bytes.subarray(from, from + length);
  }

  /** A reader of the next bytes only. */
  part(length: number): PacketReader {
    const from = this.#advance(length);
    return new PacketReader(this.#bytes, from, from + length);
  }

  /** Throws unless everything was read. */
  finish(): void {
    if (this.remaining > 0) throw new MqttError(REASON.malformed, "the packet is too long");
  }

  #advance(length: number): number {
    const from = this.#at;
    if (from + length > this.#end) {
      throw new MqttError(REASON.malformed, "the packet is too short");
    }
    this.#at = from + length;
    return from;
  }
}
