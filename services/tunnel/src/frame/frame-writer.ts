// Writes frames as WebSocket messages: small ones collected, large ones without a copy.
import { randomFillSync } from "node:crypto";
import type { Socket } from "node:net";
import { FrameType, type FrameTypeId, HEADER_BYTES, writeFrameHeader } from "./format.ts";
import {
  encodeClose,
  encodeControl,
  Opcode,
  unmask,
  WEBSOCKET_HEADER_BYTES_MAX,
  writeWebSocketHeader,
} from "./websocket.ts";

/** Options of {@link FrameWriter}. */
export interface FrameWriterOptions {
  socket: Socket;
  /** Frames of clients are masked. */
  isMasking: boolean;
  /** Masking adds nothing: the key is zero. */
  isPrivate: boolean;
  /** Too many small frames wait for a peer that does not read. */
  onOverflow: () => void;
}

const OUT_BYTES = 65_536;
const OUT_BYTES_MAX = 1_048_576;
/** From this size on the buffer is written immediately. */
const FLUSH_BYTES = 32_768;
const NO_BYTES = Buffer.alloc(0);
const ZERO_KEY = Buffer.alloc(4);

/**
 * Frames are collected in `out` behind room for a WebSocket header, and written as one message. Large DATA is referenced
 * instead of copied: it ends the message.
 *
 * ```text
 *   out = | room | frame | frame | … | DATA header |  + payload (referenced)
 * ```
 */
export class FrameWriter {
  readonly #options: FrameWriterOptions;
  readonly #socket: Socket;
  #out = Buffer.allocUnsafe(0);
  #outAt = WEBSOCKET_HEADER_BYTES_MAX;

  constructor(options: FrameWriterOptions) {
    this.#options = options;
    this.#socket = options.socket;
  }

  /** Appends a whole frame. True if it was written; otherwise `flush` must follow. */
  append(type: FrameTypeId, stream: number, payload: Buffer): boolean {
    const size = HEADER_BYTES + payload.length;
    if (this.#outAt + size > this.#out.length && !this.#makeRoom(size)) return true;
    writeFrameHeader(this.#out, this.#outAt, type, payload.length, stream);
    payload.copy(this.#out, this.#outAt + HEADER_BYTES);
    this.#outAt += size;
    if (this.#outAt < FLUSH_BYTES || this.#socket.writableNeedDrain) return false;
    this.flush();
    return true;
  }

  /** Writes a DATA frame whose payload is referenced until the socket has sent it. */
  sendLarge(stream: number, payload: Buffer): void {
    if (this.#outAt + HEADER_BYTES > this.#out.length && !this.#makeRoom(HEADER_BYTES)) return;
    writeFrameHeader(this.#out, this.#outAt, FrameType.Data, payload.length, stream);
    this.#outAt += HEADER_BYTES;
    this.#write(payload);
  }

  /** Writes the collected frames. */
  flush(): void {
    if (this.#outAt > WEBSOCKET_HEADER_BYTES_MAX) this.#write(NO_BYTES);
  }

  /** Frees the buffer of an idle connection. */
  release(): void {
    if (this.#outAt === WEBSOCKET_HEADER_BYTES_MAX) this.#out = NO_BYTES;
  }

  /** Sends a WebSocket control frame, after the collected frames: it must not split a message. */
  sendControl(opcode: number, payload: Buffer): void {
    this.flush();
    this.#socket.write(encodeControl(opcode, payload, this.#chooseKey()));
  }

  /** A Close frame. */
  encodeClose(status: number, reason: string): Buffer {
    return encodeClose(status, reason, this.#chooseKey());
  }

  #makeRoom(size: number): boolean {
    if (!this.#socket.writableNeedDrain) this.flush();
    if (this.#outAt + size <= this.#out.length) return true;
    if (this.#outAt + size > OUT_BYTES_MAX) {
      this.#options.onOverflow();
      return false;
    }
    const least = Math.max(OUT_BYTES, this.#out.length * 2, this.#outAt + size);
    const larger = Buffer.allocUnsafeSlow(least);
    this.#out.copy(larger, 0, 0, Math.min(this.#outAt, this.#out.length));
    this.#out = larger;
    return true;
  }

  /** Writes `out`, and `payload` after it, as one message. */
  #write(payload: Buffer): void {
    const socket = this.#socket;
    const key = this.#chooseKey();
    let content = payload;
    if (key !== null && key !== ZERO_KEY) {
      const keyAt = unmask(this.#out, WEBSOCKET_HEADER_BYTES_MAX, this.#outAt, key, 0);
      content = Buffer.from(payload);
      unmask(content, 0, content.length, key, keyAt);
    }
    const start = writeWebSocketHeader(
      this.#out,
      WEBSOCKET_HEADER_BYTES_MAX,
      Opcode.Binary,
      this.#outAt - WEBSOCKET_HEADER_BYTES_MAX + payload.length,
      key,
    );
    const head = this.#out.subarray(start, this.#outAt);
    if (content.length === 0) socket.write(head);
    else {
      socket.cork();
      socket.write(head);
      socket.write(content);
      socket.uncork();
    }
    this.#outAt = WEBSOCKET_HEADER_BYTES_MAX;
    // The socket still references what it has not written.
    if (socket.writableLength > 0 || this.#out.length > OUT_BYTES) this.#out = NO_BYTES;
  }

  #chooseKey(): Buffer | null {
    const { isMasking, isPrivate } = this.#options;
    if (!isMasking) return null;
    return isPrivate ? ZERO_KEY : randomFillSync(Buffer.alloc(4));
  }
}
