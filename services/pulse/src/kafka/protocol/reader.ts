// Reads the protocol's primitives from one frame; every length is checked before it is used.
import { isUtf8 } from "node:buffer";
import { ProtocolError } from "./error.ts";

/** Default limit of the elements of all arrays of one frame. */
const ITEMS_MAX_DEFAULT = 100_000;

/**
 * A cursor over one frame. Every read is checked against the end of the frame, and array counts also against a budget of
 * elements for the whole frame, so that no frame makes the reader allocate much more than its own size.
 *
 * Primitive types: Kafka protocol guide, "Protocol Primitive Types".
 */
export class Reader {
  /** Compact lengths and tagged fields (KIP-482) instead of the classic encoding. */
  flexible = false;
  readonly #bytes: Buffer;
  readonly #end: number;
  #at: number;
  readonly #budget: { items: number };

  constructor(bytes: Buffer, itemsMax: number | { items: number } = ITEMS_MAX_DEFAULT) {
    this.#bytes = bytes;
    this.#end = bytes.length;
    this.#at = 0;
    this.#budget = typeof itemsMax === "number" ? { items: itemsMax } : itemsMax;
  }

  /** Unread bytes. */
  get remaining(): number {
    return this.#end - this.#at;
  }

  readInt8(): number {
    return this.#bytes.readInt8(this.#advance(1));
  }

  readInt16(): number {
    return this.#bytes.readInt16BE(this.#advance(2));
  }

  readInt32(): number {
    return this.#bytes.readInt32BE(this.#advance(4));
  }

  /** Exact within ±2^53, which offsets and times never exceed; otherwise the nearest double. */
  readInt64(): number {
    const at = this.#advance(8);
    return this.#bytes.readInt32BE(at) * 4294967296 + this.#bytes.readUInt32BE(at + 4);
  }

  /** Any number except 0 is true. */
  readBoolean(): boolean {
    return this.readInt8() !== 0;
  }

  /** Sixteen bytes as 32 hexadecimal digits. */
  readUuid(): string {
    const at = this.#advance(16);
    return this.#bytes.toString("hex", at, at + 16);
  }

  /** An UNSIGNED_VARINT: seven bits per byte, lowest first, at most five bytes. */
  readUnsignedVarint(): number {
    let value = 0;
    for (let shift = 0; shift <= 28; shift += 7) {
      const byte = this.#bytes[this.#advance(1)]!;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) {
        if (value > 0xffffffff) break;
        return value;
      }
    }
    throw new ProtocolError("a varint is longer than 32 bits");
  }

  /** STRING, NULLABLE_STRING and their compact forms. */
  readNullableString(): string | null {
    const length = this.flexible ? this.readUnsignedVarint() - 1 : this.readInt16();
    if (length === -1) return null;
    if (length < 0 || length > 0x7fff) throw new ProtocolError(`a string of ${length} bytes`);
    const at = this.#advance(length);
    const bytes = this.#bytes.subarray(at, at + length);
    if (!isUtf8(bytes)) throw new ProtocolError("a string is not UTF-8");
    return bytes.toString("utf8");
  }

  /** A string that may not be null. */
  readString(): string {
    const value = this.readNullableString();
    if (value === null) throw new ProtocolError("a string is null");
    return value;
  }

  /** BYTES, NULLABLE_BYTES, RECORDS and their compact forms: a view, not a copy. */
  readNullableBytes(): Buffer | null {
    const length = this.flexible ? this.readUnsignedVarint() - 1 : this.readInt32();
    if (length === -1) return null;
    if (length < 0) throw new ProtocolError(`${length} bytes`);
    const at = this.#advance(length);
    return this.#bytes.subarray(at, at + length);
  }

  /** Bytes that may not be null. */
  readBytes(): Buffer {
    const value = this.readNullableBytes();
    if (value === null) throw new ProtocolError("bytes are null");
    return value;
  }

  /** The count of an ARRAY or COMPACT_ARRAY; -1 for null. Each element takes at least a byte. */
  readArrayLength(): number {
    const length = this.flexible ? this.readUnsignedVarint() - 1 : this.readInt32();
    if (length === -1) return -1;
    if (length < 0 || length > this.remaining) {
      throw new ProtocolError(`an array of ${length} elements in ${this.remaining} bytes`);
    }
    this.#budget.items -= length;
    if (this.#budget.items < 0) throw new ProtocolError("too many array elements in one frame");
    return length;
  }

  /** The next `length` bytes as a separate reader with the same budget of elements. */
  readSlice(length: number): Reader {
    const at = this.#advance(length);
    const slice = new Reader(this.#bytes.subarray(at, at + length), this.#budget);
    slice.flexible = this.flexible;
    return slice;
  }

  /** Throws unless everything was read. */
  expectEnd(): void {
    if (this.remaining > 0) throw new ProtocolError(`${this.remaining} bytes after the message`);
  }

  #advance(length: number): number {
    const at = this.#at;
    if (length > this.#end - at) {
      throw new ProtocolError(`${length} bytes expected, ${this.#end - at} left`);
    }
    this.#at = at + length;
    return at;
  }
}
