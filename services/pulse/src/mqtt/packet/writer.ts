// Writes the fields of a packet into a buffer of its exact size.

/** Bytes of a variable byte integer. */
export function variableLength(value: number): number {
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  return value < 0x20_0000 ? 3 : 4;
}

/** A position in the buffer of a packet. */
export class PacketWriter {
  readonly buffer: Buffer;
  #at = 0;

  /** `firstByte`: type and flags; `bodyBytes`: size of what follows the fixed header. */
  constructor(firstByte: number, bodyBytes: number) {
    this.buffer = Buffer.allocUnsafe(1 + variableLength(bodyBytes) + bodyBytes);
    this.byte(firstByte);
    this.variable(bodyBytes);
  }

  byte(value: number): void {
    this.buffer[this.#at++] = value;
  }

  uint16(value: number): void {
    this.#at = this.buffer.writeUInt16BE(value, this.#at);
  }

  uint32(value: number): void {
    this.#at = this.buffer.writeUInt32BE(value, this.#at);
  }

  variable(value: number): void {
    let rest = value;
    for (; rest > 0x7f; rest >>>= 7) this.byte((rest & 0x7f) | 0x80);
    this.byte(rest);
  }

  text(value: string): void {
    const length = this.buffer.write(value, this.#at + 2);
    this.buffer.writeUInt16BE(length, this.#at);
    this.#at += 2 + length;
  }

  binary(value: Buffer): void {
    this.uint16(value.length);
    this.bytes(value);
  }

  bytes(value: Buffer): void {
    value.copy(this.buffer, this.#at);
    this.#at += value.length;
  }
}
