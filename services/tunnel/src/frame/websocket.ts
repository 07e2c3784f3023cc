// WebSocket framing (RFC 6455) of binary messages on a socket. Their payloads form one byte stream: message boundaries
// have no meaning, so nothing is collected.
import { createHash } from "node:crypto";
import { GoAwayCode, type GoAwayCodeId, WireError } from "./format.ts";

/** Most bytes of a WebSocket frame's header. */
export const WEBSOCKET_HEADER_BYTES_MAX = 14;
const PAYLOAD_BYTES_MAX = 16_777_216;
const CONTROL_BYTES_MAX = 125;
const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Opcodes in use. */
export const Opcode = { Continuation: 0, Text: 1, Binary: 2, Close: 8, Ping: 9, Pong: 10 } as const;

/** Receives the content of WebSocket frames. */
export interface WebSocketTaker {
  /** Bytes of binary messages: `bytes[start, end)`, unmasked, valid until the call returns. */
  onMessageBytes(bytes: Buffer, start: number, end: number): void;
  /** A Ping or Pong. */
  onControl(opcode: number, payload: Buffer): void;
  /** A Close frame; 1005 without a status. */
  onCloseFrame(status: number, reason: string): void;
}

/**
 * Reads one direction. Pieces may end anywhere; masked bytes are unmasked in place.
 *
 * ```text
 *   2 bytes: FIN, opcode | MASK, length --extended length, key--> payload --> next frame
 * ```
 */
export class WebSocketReader {
  readonly #taker: WebSocketTaker;
  readonly #isMasked: boolean;
  readonly #header = Buffer.alloc(WEBSOCKET_HEADER_BYTES_MAX);
  #headerBytes = 0;
  #headerMissing = 2;
  #opcode = 0;
  #missing = 0;
  #inPayload = false;
  #inMessage = false;
  readonly #key = Buffer.alloc(4);
  #hasKey = false;
  #keyAt = 0;
  readonly #control = Buffer.alloc(CONTROL_BYTES_MAX);
  #controlBytes = 0;

  /** `isMasked`: frames of clients are masked, frames of servers are not (RFC 6455 section 5.1). */
  constructor(taker: WebSocketTaker, isMasked: boolean) {
    this.#taker = taker;
    this.#isMasked = isMasked;
  }

  /** Reads `bytes[start, end)`. Throws a `WireError`. */
  push(bytes: Buffer, start: number, end: number): void {
    let at = start;
    while (at < end || (this.#inPayload && this.#missing === 0)) {
      at = this.#inPayload ? this.#takePayload(bytes, at, end) : this.#takeHeader(bytes, at, end);
    }
  }

  #takeHeader(bytes: Buffer, start: number, end: number): number {
    const taken = Math.min(this.#headerMissing, end - start);
    bytes.copy(this.#header, this.#headerBytes, start, start + taken);
    this.#headerBytes += taken;
    this.#headerMissing -= taken;
    if (this.#headerMissing > 0) return start + taken;
    const header = this.#header;
    const isBegun = this.#headerBytes === 2;
    if (isBegun) this.#checkHeader(header[0]!, header[1]!, header[0]! & 0x0f);
    const size = this.#sizeHeader();
    if (this.#headerBytes < size) this.#headerMissing = size - this.#headerBytes;
    else this.#beginPayload();
    return start + taken;
  }

  /** Size of the whole header, known after its first two bytes. */
  #sizeHeader(): number {
    const short = this.#header[1]! & 0x7f;
    return 2 + (short === 127 ? 8 : short === 126 ? 2 : 0) + (this.#isMasked ? 4 : 0);
  }

  #beginPayload(): void {
    const header = this.#header;
    const opcode = header[0]! & 0x0f;
    const short = header[1]! & 0x7f;
    let length = short;
    if (short === 126) length = header.readUInt16BE(2);
    else if (short === 127)
      length = header.readUInt32BE(2) === 0 ? header.readUInt32BE(6) : Infinity;
    if (length > PAYLOAD_BYTES_MAX) {
      throw new WireError("websocket", `a WebSocket frame exceeds ${PAYLOAD_BYTES_MAX} bytes`);
    }
    if (this.#isMasked) {
      header.copy(this.#key, 0, this.#headerBytes - 4, this.#headerBytes);
      this.#hasKey = this.#key.readUInt32LE(0) !== 0;
      this.#keyAt = 0;
    }
    this.#opcode = opcode;
    this.#missing = length;
    this.#controlBytes = 0;
    this.#inPayload = true;
    this.#headerBytes = 0;
    this.#headerMissing = 2;
  }

  #checkHeader(first: number, second: number, opcode: number): void {
    const isFinal = (first & 0x80) !== 0;
    if ((first & 0x70) !== 0) throw new WireError("websocket", "a reserved WebSocket bit is set");
    if (((second & 0x80) !== 0) !== this.#isMasked) {
      throw new WireError("websocket", "a WebSocket frame is masked by the wrong side");
    }
    switch (opcode) {
      case Opcode.Binary:
      case Opcode.Continuation:
        if ((opcode === Opcode.Continuation) !== this.#inMessage) {
          throw new WireError("websocket", "WebSocket fragments are out of order");
        }
        this.#inMessage = !isFinal;
        return;
      case Opcode.Text:
        throw new WireError("websocket", "messages must be binary");
      case Opcode.Close:
      case Opcode.Ping:
      case Opcode.Pong:
        if (!isFinal || (second & 0x7f) > CONTROL_BYTES_MAX) {
          throw new WireError("websocket", "a WebSocket control frame is fragmented or too long");
        }
        return;
      default:
        throw new WireError("websocket", `unknown WebSocket opcode ${opcode}`);
    }
  }

  #takePayload(bytes: Buffer, start: number, end: number): number {
    const stop = Math.min(end, start + this.#missing);
    if (this.#hasKey) this.#keyAt = unmask(bytes, start, stop, this.#key, this.#keyAt);
    this.#missing -= stop - start;
    if (this.#missing === 0) this.#inPayload = false;
    if (this.#opcode === Opcode.Binary || this.#opcode === Opcode.Continuation) {
      if (stop > start) this.#taker.onMessageBytes(bytes, start, stop);
      return stop;
    }
    bytes.copy(this.#control, this.#controlBytes, start, stop);
    this.#controlBytes += stop - start;
    if (!this.#inPayload) this.#endControl();
    return stop;
  }

  #endControl(): void {
    const payload = this.#control.subarray(0, this.#controlBytes);
    if (this.#opcode !== Opcode.Close) {
      this.#taker.onControl(this.#opcode, Buffer.from(payload));
      return;
    }
    const hasStatus = payload.length >= 2;
    this.#taker.onCloseFrame(
      hasStatus ? payload.readUInt16BE(0) : 1005,
      hasStatus ? payload.toString("utf8", 2) : "",
    );
  }
}

/**
 * Writes a header so that it ends at `end` (the payload follows there) and returns where it starts. `key` is null for
 * frames of servers.
 */
export function writeWebSocketHeader(
  target: Buffer,
  end: number,
  opcode: number,
  length: number,
  key: Buffer | null,
): number {
  let start = end;
  if (key !== null) {
    start -= 4;
    key.copy(target, start);
  }
  const mask = key === null ? 0 : 0x80;
  if (length < 126) {
    target[--start] = mask | length;
  } else if (length < 65_536) {
    start -= 3;
    target[start] = mask | 126;
    target.writeUInt16BE(length, start + 1);
  } else {
    start -= 9;
    target[start] = mask | 127;
    target.writeUInt32BE(0, start + 1);
    target.writeUInt32BE(length, start + 5);
  }
  target[--start] = 0x80 | opcode;
  return start;
}

/** A Close frame. */
export function encodeClose(status: number, reason: string, key: Buffer | null): Buffer {
  const text = Buffer.from(reason).subarray(0, CONTROL_BYTES_MAX - 2);
  const payload = Buffer.allocUnsafe(2 + text.length);
  payload.writeUInt16BE(status, 0);
  payload.set(text, 2);
  return encodeControl(Opcode.Close, payload, key);
}

/** A control frame of at most 125 payload bytes. */
export function encodeControl(opcode: number, payload: Buffer, key: Buffer | null): Buffer {
  const frame = Buffer.alloc(WEBSOCKET_HEADER_BYTES_MAX + payload.length);
  payload.copy(frame, WEBSOCKET_HEADER_BYTES_MAX);
  if (key !== null) unmask(frame, WEBSOCKET_HEADER_BYTES_MAX, frame.length, key, 0);
  const start = writeWebSocketHeader(
    frame,
    WEBSOCKET_HEADER_BYTES_MAX,
    opcode,
    payload.length,
    key,
  );
  return frame.subarray(start);
}

/** XORs `bytes[start, end)` with the key from its byte `keyAt` on; returns the next position in the key. */
export function unmask(
  bytes: Buffer,
  start: number,
  end: number,
  key: Buffer,
  keyAt: number,
): number {
  let at = start;
  let position = keyAt;
  const wordsAt = Math.min(end, start + ((4 - ((bytes.byteOffset + start) & 3)) & 3));
  for (; at < wordsAt; at++) {
    bytes[at] = bytes[at]! ^ key[position]!;
    position = (position + 1) & 3;
  }
  const words = (end - at) >> 2;
  if (words > 0) {
    const view = new Int32Array(bytes.buffer, bytes.byteOffset + at, words);
    const turned = Buffer.from([0, 1, 2, 3].map((index) => key[(position + index) & 3]!));
    // Typed arrays use the machine's byte order.
    const word = new Int32Array(turned.buffer.slice(turned.byteOffset, turned.byteOffset + 4))[0]!;
    for (let index = 0; index < words; index++) view[index] = view[index]! ^ word;
    at += words << 2;
  }
  for (; at < end; at++) {
    bytes[at] = bytes[at]! ^ key[position]!;
    position = (position + 1) & 3;
  }
  return position;
}

/** The value of `Sec-WebSocket-Accept` (RFC 6455 section 4.2.2). */
export function computeAccept(webSocketKey: string): string {
  return createHash("sha1").update(`${webSocketKey}${GUID}`).digest("base64");
}

/** Status of the Close frame after GOAWAY (RFC 6455 section 7.4.1). */
export function closeStatusOf(code: GoAwayCodeId): number {
  switch (code) {
    case GoAwayCode.Draining:
    case GoAwayCode.Silent:
      return 1001;
    case GoAwayCode.Protocol:
      return 1002;
    case GoAwayCode.Unauthorized:
    case GoAwayCode.Replaced:
    case GoAwayCode.Removed:
      return 1008;
    case GoAwayCode.Overloaded:
      return 1013;
    default:
      return code satisfies never;
  }
}
