// The binary format of frames: docs/internals/tunnel-wire.md.

/** Version of the wire format: the WebSocket subprotocol that both ends agree on. */
export const SUBPROTOCOL = "platform-tunnel.1";
/** Bytes before the payload: type (1), length of the payload (3), stream (4), all big-endian. */
export const HEADER_BYTES = 8;
/** Largest payload of a frame. */
export const PAYLOAD_BYTES_MAX = 65_536;
/** Credit of both directions of a new stream. */
export const INITIAL_CREDIT_BYTES = 65_536;
/** Largest credit of a stream: what a peer may grant in total without having received data. */
export const CREDIT_BYTES_MAX = 0x7fff_ffff;
/** Largest stream id; a connection that has used it must be replaced. */
export const STREAM_MAX = 0x7fff_ffff;

/** Types of frames. */
export const FrameType = {
  /** Client → relay, first: JSON, see `messages.ts`. */
  Hello: 1,
  /** Relay → client, answers HELLO: JSON. */
  Welcome: 2,
  /** Relay → client: opens a stream to a tunnel's target. Payload: tunnel number (2), then JSON or nothing. */
  Open: 3,
  /** Bytes of a stream, at least one. */
  Data: 4,
  /** The sender has no more bytes for the stream. Payload: bytes delivered (8). */
  End: 5,
  /** The stream is dropped in both directions. Payload: code (4), bytes delivered (8). */
  Reset: 6,
  /** Credit for the other end's DATA. Payload: bytes (4), at least one. */
  Window: 7,
  /** Keep-alive: answered by PONG with the same payload of eight bytes. */
  Ping: 8,
  Pong: 9,
  /** The sender opens and accepts no more streams. Payload: code (4), reason in UTF-8. */
  GoAway: 10,
  /** Relay → client: finished requests, JSON. */
  Event: 11,
} as const;

/** One of the values of `FrameType`. */
export type FrameTypeId = (typeof FrameType)[keyof typeof FrameType];

/** The types besides DATA. */
export type OtherTypeId = Exclude<FrameTypeId, typeof FrameType.Data>;

/** Reasons of RESET. */
export const ResetCode = {
  /** The sender is no longer interested. */
  Cancelled: 0,
  /** The target refused the connection. */
  Refused: 1,
  /** The target's address could not be found or reached. */
  Unreachable: 2,
  /** The target did not accept the connection in time. */
  TimedOut: 3,
  /** The target's connection was reset. */
  Broken: 4,
  /** The TLS handshake with the target failed. */
  TlsFailed: 5,
  /** The peer sent more bytes than its credit. */
  OverCredit: 6,
  /** Too many streams, or no memory for this one. */
  Overloaded: 7,
  /** The number in OPEN names no tunnel of this connection. */
  UnknownTunnel: 8,
} as const;

/** One of the values of `ResetCode`. */
export type ResetCodeId = (typeof ResetCode)[keyof typeof ResetCode];

/** Reasons of GOAWAY. */
export const GoAwayCode = {
  /** The sender stops: streams may finish, and the client dials again. */
  Draining: 0,
  /** The peer violated this protocol. */
  Protocol: 1,
  /** The token has expired or was withdrawn: dialing again needs another one. */
  Unauthorized: 2,
  /** Another connection has taken over the names of this one: the client must not dial again. */
  Replaced: 3,
  /** The tunnels were deleted, or their subject was cut off: the client must not dial again. */
  Removed: 4,
  /** The peer was silent for too long. */
  Silent: 5,
  /** The peer does not read, or the relay is full. */
  Overloaded: 6,
} as const;

/** One of the values of `GoAwayCode`. */
export type GoAwayCodeId = (typeof GoAwayCode)[keyof typeof GoAwayCode];

/** A violation of the wire format or its rules: the connection must be closed. `message` says what and where. */
export class WireError extends Error {
  /** Stable code, such as `unknown_frame_type`. */
  readonly code: WireErrorCode;

  constructor(code: WireErrorCode, message: string) {
    super(message);
    this.name = "WireError";
    this.code = code;
  }
}

/** Codes of violations. */
export type WireErrorCode =
  | "unknown_frame_type"
  | "bad_length"
  | "bad_stream"
  | "bad_payload"
  | "unexpected_frame"
  | "late_bytes"
  | "too_many_frames"
  | "websocket";

/** Writes a frame's header at `at`. */
export function writeFrameHeader(
  target: Buffer,
  at: number,
  type: FrameTypeId,
  length: number,
  stream: number,
): void {
  target[at] = type;
  target[at + 1] = length >>> 16;
  target[at + 2] = (length >>> 8) & 0xff;
  target[at + 3] = length & 0xff;
  target[at + 4] = stream >>> 24;
  target[at + 5] = (stream >>> 16) & 0xff;
  target[at + 6] = (stream >>> 8) & 0xff;
  target[at + 7] = stream & 0xff;
}

/** A whole frame with its payload. */
export function encodeFrame(type: FrameTypeId, stream: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  writeFrameHeader(frame, 0, type, payload.length, stream);
  frame.set(payload, HEADER_BYTES);
  return frame;
}

/** The payload of END. */
export function encodeEnd(delivered: number): Buffer {
  const payload = Buffer.allocUnsafe(8);
  writeCount(payload, 0, delivered);
  return payload;
}

/** The payload of RESET. */
export function encodeReset(code: number, delivered: number): Buffer {
  const payload = Buffer.allocUnsafe(12);
  payload.writeUInt32BE(code, 0);
  writeCount(payload, 4, delivered);
  return payload;
}

/** The payload of WINDOW. */
export function encodeWindow(bytes: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(bytes, 0);
  return payload;
}

/** The payload of OPEN: the tunnel's number in WELCOME, and the address of the public client or "". */
export function encodeOpen(tunnel: number, peer: string): Buffer {
  const payload = Buffer.allocUnsafe(2 + Buffer.byteLength(peer));
  payload.writeUInt16BE(tunnel, 0);
  payload.write(peer, 2);
  return payload;
}

/** The payload of GOAWAY. */
export function encodeGoAway(code: number, reason: string): Buffer {
  const text = Buffer.from(reason).subarray(0, 1_024);
  const payload = Buffer.allocUnsafe(4 + text.length);
  payload.writeUInt32BE(code, 0);
  payload.set(text, 4);
  return payload;
}

/** Reads a count of up to 2^53 - 1 written by `writeCount`; larger ones are a violation. */
export function readCount(payload: Buffer, at: number): number {
  const high = payload.readUInt32BE(at);
  if (high > 0x1f_ffff) throw new WireError("bad_payload", "a count exceeds 2^53 - 1");
  return high * 0x1_0000_0000 + payload.readUInt32BE(at + 4);
}

/** The code of a RESET; unknown ones count as `Broken`. */
export function readResetCode(payload: Buffer): ResetCodeId {
  const code = payload.readUInt32BE(0);
  const known = Object.values(ResetCode).find((value) => value === code);
  return known ?? ResetCode.Broken;
}

function writeCount(payload: Buffer, at: number, count: number): void {
  payload.writeUInt32BE(Math.floor(count / 0x1_0000_0000), at);
  payload.writeUInt32BE(count % 0x1_0000_0000, at + 4);
}
