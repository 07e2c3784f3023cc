// Splits received bytes into packets.
import { CONNECT_TYPE } from "./decode.ts";
import { MqttError, REASON } from "./reason-codes.ts";

const EMPTY = Buffer.alloc(0);

/** A packet as received. */
export interface Frame {
  firstByte: number;
  body: Buffer;
}

/**
 * The unprocessed bytes of a connection. A packet over `bytesMax` is refused as soon as its length is known; the first
 * packet must be a CONNECT, and is refused when its first byte is not.
 */
export class FrameReader {
  readonly #bytesMax: number;
  #chunk: Buffer = EMPTY;
  #at = 0;
  /** Chunks of an incomplete packet after the first one. */
  #more: Buffer[] | undefined;
  #moreBytes = 0;
  #isFirst = true;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Unprocessed bytes. */
  get bytes(): number {
    return this.#chunk.length - this.#at + this.#moreBytes;
  }

  /** Adds bytes, which must not change afterwards. */
  push(bytes: Buffer): void {
    if (this.#at === this.#chunk.length) {
      this.#chunk = bytes;
      this.#at = 0;
      return;
    }
    (this.#more ??= []).push(bytes);
    this.#moreBytes += bytes.length;
    // Headers are read from one buffer.
    if (this.#chunk.length - this.#at < 5) this.#join();
  }

  /** Size of the packet that has begun, with its header; undefined if not known yet. Throws if it is too large. */
  measure(): number | undefined {
    const available = this.#chunk.length - this.#at;
    if (available === 0) return undefined;
    if (this.#isFirst && this.#chunk[this.#at]! >> 4 !== CONNECT_TYPE) {
      throw new MqttError(REASON.protocolError, "the first packet is not a CONNECT");
    }
    let length = 0;
    for (let count = 1; count < available; count++) {
      const byte = this.#chunk[this.#at + count]!;
      length += (byte & 0x7f) * 128 ** (count - 1);
      if (byte < 0x80) return this.#check(1 + count + length, byte === 0 && count > 1);
      if (count === 4) throw new MqttError(REASON.malformed, "the remaining length is not valid");
    }
    return undefined;
  }

  /** Removes and returns the next packet; undefined if it is incomplete. */
  next(): Frame | undefined {
    const size = this.measure();
    if (size === undefined || this.bytes < size) return undefined;
    if (this.#chunk.length - this.#at < size) this.#join();
    const chunk = this.#chunk;
    const end = this.#at + size;
    let start = this.#at + 1;
    while (chunk[start]! > 0x7f) start++;
    const frame = { firstByte: chunk[this.#at]!, body: chunk.subarray(start + 1, end) };
    this.#at = end;
    this.#isFirst = false;
    if (end === chunk.length) {
      this.#chunk = EMPTY;
      this.#at = 0;
      if (this.#more !== undefined) this.#join();
    }
    return frame;
  }

  #check(size: number, isPadded: boolean): number {
    if (isPadded) throw new MqttError(REASON.malformed, "the remaining length is not valid");
    if (size <= this.#bytesMax) return size;
    throw new MqttError(REASON.packetTooLarge, `packets have ${this.#bytesMax} bytes at most`);
  }

  #join(): void {
    if (this.#more === undefined) return;
    this.#chunk = Buffer.concat([this.#chunk.subarray(this.#at), ...this.#more]);
    this.#at = 0;
    this.#more = undefined;
    this.#moreBytes = 0;
  }
}
