// Decodes frames from a byte stream, whose pieces may end anywhere.
import {
  FrameType,
  type FrameTypeId,
  type OtherTypeId,
  HEADER_BYTES,
  PAYLOAD_BYTES_MAX,
  STREAM_MAX,
  WireError,
} from "./format.ts";

/** Receives decoded frames. */
export interface FrameTaker {
  /** A part of a DATA frame: `bytes[start, end)`, valid until the call returns. A frame may arrive in several parts. */
  onData(stream: number, bytes: Buffer, start: number, end: number): void;
  /** Any other frame. `payload` is valid until the call returns. */
  onFrame(type: OtherTypeId, stream: number, payload: Buffer): void;
}

/** Least and most payload bytes by type, and whether the frame belongs to a stream. */
const SHAPES: ReadonlyMap<number, readonly [least: number, most: number, hasStream: boolean]> =
  new Map([
    [FrameType.Hello, [2, PAYLOAD_BYTES_MAX, false]],
    [FrameType.Welcome, [2, PAYLOAD_BYTES_MAX, false]],
    [FrameType.Open, [2, 256, true]],
    [FrameType.Data, [1, PAYLOAD_BYTES_MAX, true]],
    [FrameType.End, [8, 8, true]],
    [FrameType.Reset, [12, 12, true]],
    [FrameType.Window, [4, 4, true]],
    [FrameType.Ping, [8, 8, false]],
    [FrameType.Pong, [8, 8, false]],
    [FrameType.GoAway, [4, 1_028, false]],
    [FrameType.Event, [2, PAYLOAD_BYTES_MAX, false]],
  ]);

/**
 * The decoder of one direction. Headers and small payloads that are split over pieces are collected; DATA is passed on as
 * it arrives, so a large frame is never buffered.
 *
 * ```text
 *   Header --8 bytes, DATA--> Data --length bytes--> Header
 *      \-----8 bytes, others-> Payload --length bytes--> Header
 * ```
 */
export class FrameReader {
  /** Frames decoded so far. */
  frames = 0;
  readonly #taker: FrameTaker;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  #type: FrameTypeId = FrameType.Data;
  #stream = 0;
  /** Missing payload bytes of the current frame. */
  #missing = 0;
  #inData = false;
  #payload: Buffer | null = null;
  #payloadBytes = 0;

  constructor(taker: FrameTaker) {
    this.#taker = taker;
  }

  /** True between two frames. */
  get isBetweenFrames(): boolean {
    return this.#headerBytes === 0;
  }

  /** Decodes `bytes[start, end)`. Throws a `WireError`; the reader must not be used afterwards. */
  push(bytes: Buffer, start: number, end: number): void {
    let at = start;
    while (at < end) {
      if (this.#headerBytes < HEADER_BYTES) at = this.#takeHeader(bytes, at, end);
      else if (this.#inData) at = this.#takeData(bytes, at, end);
      else at = this.#takePayload(bytes, at, end);
    }
  }

  #takeHeader(bytes: Buffer, start: number, end: number): number {
    if (this.#headerBytes === 0 && end - start >= HEADER_BYTES) {
      this.#begin(bytes, start);
      return start + HEADER_BYTES;
    }
    const taken = Math.min(HEADER_BYTES - this.#headerBytes, end - start);
    bytes.copy(this.#header, this.#headerBytes, start, start + taken);
    this.#headerBytes += taken;
    if (this.#headerBytes === HEADER_BYTES) this.#begin(this.#header, 0);
    return start + taken;
  }

  #begin(header: Buffer, at: number): void {
    const type = header[at]!;
    const length = (header[at + 1]! << 16) | (header[at + 2]! << 8) | header[at + 3]!;
    const stream =
      header[at + 4]! * 0x100_0000 +
      ((header[at + 5]! << 16) | (header[at + 6]! << 8) | header[at + 7]!);
    // The commonest type is checked without the table.
    if (type !== FrameType.Data || length === 0 || length > PAYLOAD_BYTES_MAX || stream === 0) {
      checkShape(type, length, stream);
    } else if (stream > STREAM_MAX) throw badStream(type, stream);
    this.frames++;
    this.#type = type as FrameTypeId;
    this.#stream = stream;
    this.#missing = length;
    this.#inData = type === FrameType.Data;
    this.#headerBytes = HEADER_BYTES;
  }

  #takeData(bytes: Buffer, start: number, end: number): number {
    const stop = Math.min(end, start + this.#missing);
    this.#missing -= stop - start;
    if (this.#missing === 0) this.#headerBytes = 0;
    this.#taker.onData(this.#stream, bytes, start, stop);
    return stop;
  }

  #takePayload(bytes: Buffer, start: number, end: number): number {
    const stop = Math.min(end, start + this.#missing);
    const isWhole = this.#payload === null && stop - start === this.#missing;
    if (isWhole) {
      this.#headerBytes = 0;
      this.#taker.onFrame(this.#type as OtherTypeId, this.#stream, bytes.subarray(start, stop));
      return stop;
    }
    this.#payload ??= Buffer.allocUnsafe(this.#missing);
    bytes.copy(this.#payload, this.#payloadBytes, start, stop);
    this.#payloadBytes += stop - start;
    this.#missing -= stop - start;
    if (this.#missing === 0) {
      const payload = this.#payload;
      this.#payload = null;
      this.#payloadBytes = 0;
      this.#headerBytes = 0;
      this.#taker.onFrame(this.#type as OtherTypeId, this.#stream, payload);
    }
    return stop;
  }
}

function checkShape(type: number, length: number, stream: number): void {
  const shape = SHAPES.get(type);
  if (shape === undefined) throw new WireError("unknown_frame_type", `unknown frame type ${type}`);
  const [least, most, hasStream] = shape;
  if (length < least || length > most) {
    throw new WireError(
      "bad_length",
      `a frame of type ${type} has ${length} payload bytes; allowed are ${least} to ${most}`,
    );
  }
  if (stream > STREAM_MAX || (stream === 0) === hasStream) throw badStream(type, stream);
}

function badStream(type: number, stream: number): WireError {
  return new WireError("bad_stream", `a frame of type ${type} has the stream id ${stream}`);
}
