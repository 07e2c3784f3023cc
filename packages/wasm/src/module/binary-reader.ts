// Reads the primitives of the WebAssembly binary format (WebAssembly Core 2.0, section 5.2).
import { GuestError } from "../errors.ts";

const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** A cursor over a part of a module. Reads past its end throw `invalid-module`. */
export class BinaryReader {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  #at: number;

  constructor(bytes: Uint8Array, start = 0, end = bytes.length) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  /** Offset of the next byte in the module. */
  get position(): number {
    return this.#at;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#end;
  }

  readByte(): number {
    if (this.#at >= this.#end) throw truncated(this.#at);
    return this.#bytes[this.#at++]!;
  }

  /** Unsigned LEB128 of at most 32 bits. */
  readUint32(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.readByte();
      if (shift === 28 && byte > 0x0f) break;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw new GuestError("invalid-module", `The number before byte ${this.#at} is too long.`);
  }

  /** Passes a LEB128 number of at most `bits` bits. */
  skipInteger(bits: number): void {
    for (let left = Math.ceil(bits / 7); left > 0; left--) if (this.readByte() < 0x80) return;
    throw new GuestError("invalid-module", `The number before byte ${this.#at} is too long.`);
  }

  readName(): string {
    const bytes = this.readBytes(this.readUint32());
    try {
      return UTF8.decode(bytes);
    } catch {
      throw new GuestError("invalid-module", `The name before byte ${this.#at} is not UTF-8.`);
    }
  }

  /** All bytes that have not been read. */
  readRest(): Uint8Array {
    return this.readBytes(this.#end - this.#at);
  }

  readBytes(count: number): Uint8Array {
    if (count > this.#end - this.#at) throw truncated(this.#at);
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }
}

/** Encodes unsigned LEB128 in the minimum number of bytes. */
export function encodeUint32(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 0x7f) {
    bytes.push((rest & 0x7f) | 0x80);
    rest >>>= 7;
  }
  bytes.push(rest);
  return bytes;
}

/** Encodes signed LEB128 of 32 bits in the minimum number of bytes. */
export function encodeInt32(value: number): number[] {
  const bytes: number[] = [];
  let rest = value | 0;
  for (;;) {
    const low = rest & 0x7f;
    rest >>= 7;
    if ((rest === 0 && low < 0x40) || (rest === -1 && low >= 0x40)) return [...bytes, low];
    bytes.push(low | 0x80);
  }
}

function truncated(position: number): GuestError {
  return new GuestError("invalid-module", `The module ends too early, at byte ${position}.`);
}
