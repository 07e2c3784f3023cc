// Scans WebSocket frames (RFC 6455 §5.2) to insert a Close frame between two of them.
const CLOSE = 0x8;

/** Close with 1001, going away, as a server sends it. */
export const CLOSE_FROM_SERVER = Buffer.from([0x88, 0x02, 0x03, 0xe9]);
/** The same from a client: masked, with zeros. */
export const CLOSE_FROM_CLIENT = Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9]);

/** Tracks the frames of one direction from its first byte on, without validation. */
export class FrameScan {
  /** A Close frame has started: no other may follow it. */
  sawClose = false;
  #headerBytes = 0;
  #opcode = 0;
  #lengthBytesLeft = 0;
  #maskBytesLeft = 0;
  #length = 0;
  #payloadLeft = 0;

  /** True if the next byte starts a frame. */
  get isBetweenFrames(): boolean {
    return this.#headerBytes === 0 && this.#payloadLeft === 0;
  }

  /** Processes the next bytes of the direction. */
  take(bytes: Uint8Array, start: number, end: number): void {
    for (let at = start; at < end;) at = this.#takeSome(bytes, at, end);
  }

  /** Processes bytes up to the end of the current frame and returns that position, at most `end`. */
  takeToFrameEnd(bytes: Uint8Array, start: number, end: number): number {
    let at = start;
    while (at < end && !this.isBetweenFrames) at = this.#takeSome(bytes, at, end);
    return at;
  }

  #takeSome(bytes: Uint8Array, at: number, end: number): number {
    if (this.#payloadLeft === 0) {
      this.#takeHeader(bytes[at]!);
      return at + 1;
    }
    const taken = Math.min(this.#payloadLeft, end - at);
    this.#payloadLeft -= taken;
    return at + taken;
  }

  #takeHeader(byte: number): void {
    const index = this.#headerBytes++;
    if (index === 0) {
      this.#opcode = byte & 0x0f;
      return;
    }
    if (index === 1) {
      const length = byte & 0x7f;
      this.#lengthBytesLeft = length === 127 ? 8 : length === 126 ? 2 : 0;
      this.#length = this.#lengthBytesLeft === 0 ? length : 0;
      this.#maskBytesLeft = byte >= 0x80 ? 4 : 0;
    } else if (this.#lengthBytesLeft > 0) {
      this.#lengthBytesLeft--;
      this.#length = this.#length * 256 + byte;
    } else {
      this.#maskBytesLeft--;
    }
    if (this.#lengthBytesLeft > 0 || this.#maskBytesLeft > 0) return;
    this.#headerBytes = 0;
    this.#payloadLeft = this.#length;
    if (this.#opcode === CLOSE) this.sawClose = true;
  }
}
