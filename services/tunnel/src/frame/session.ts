// A session: all streams between relay and client over one WebSocket.
import type { Socket } from "node:net";
import { createReadShortener } from "@platform/kernel/sockets";
import {
  encodeGoAway,
  encodeEnd,
  encodeOpen,
  encodeReset,
  encodeWindow,
  FrameType,
  type FrameTypeId,
  type GoAwayCodeId,
  GoAwayCode,
  type OtherTypeId,
  PAYLOAD_BYTES_MAX,
  readCount,
  readResetCode,
  ResetCode,
  type ResetCodeId,
  WireError,
} from "./format.ts";
import { FrameReader, type FrameTaker } from "./frame-reader.ts";
import { FrameWriter } from "./frame-writer.ts";
import { KeepAlive } from "./keep-alive.ts";
import type { ReceiveBudget } from "./receive-budget.ts";
import type { SessionEnd, SessionOptions } from "./session-contract.ts";
import { COPIED_BYTES_MAX, type Stream, type StreamHost } from "./stream.ts";
import { StreamTable } from "./stream-table.ts";
import { closeStatusOf, Opcode, WebSocketReader, type WebSocketTaker } from "./websocket.ts";

/** Most bytes that a stream sends in its turn while others wait. */
const TURN_BYTES = 32_768;
const READ_BYTES = 65_536;
/** Pings, and frames for streams that are over, that a peer may send per second. */
const IDLE_FRAMES_PER_SECOND_MAX = 20_000;

/** Reads of all sessions go into one buffer; only busy ones have their own. */
const sharedReads = Buffer.allocUnsafeSlow(READ_BYTES);

/** One connection between relay and client. Small frames are written together at the end of the loop's turn. */
export class Session implements StreamHost, FrameTaker, WebSocketTaker {
  readonly budget: ReceiveBudget;
  /** The peer sent GOAWAY. */
  peerLeaves = false;
  readonly #socket: Socket;
  readonly #options: SessionOptions;
  readonly #webSocket: WebSocketReader;
  readonly #frames: FrameReader;
  readonly #streams = new StreamTable();
  readonly #out: FrameWriter;
  #ready: Stream[] = [];
  #isFlushQueued = false;
  readonly #flushSoon = (): void => {
    this.#isFlushQueued = false;
    this.flush();
  };
  /** Own read buffer of a busy session; null while reads are shared. */
  #ownReads: Buffer | null = null;
  #areReadsOwn = false;
  readonly #keepAlive = new KeepAlive(() => performance.now());
  /** Frames without a purpose since the last sweep. */
  #idleFrames = 0;
  #end: SessionEnd | null = null;
  #isClosing = false;
  #isClosed = false;

  constructor(options: SessionOptions) {
    const { socket, role, budget } = options;
    this.#options = options;
    this.#socket = socket;
    this.budget = budget;
    this.#out = new FrameWriter({
      socket,
      isMasking: role === "client",
      isPrivate: options.isPrivate,
      onOverflow: () => {
        this.#end ??= { code: GoAwayCode.Overloaded, reason: "the peer does not read" };
        socket.destroy();
      },
    });
    this.#frames = new FrameReader(this);
    this.#webSocket = new WebSocketReader(this, role === "relay");
    this.#listen();
    const rest = Buffer.from(options.rest);
    // Its owner must have the session before events arrive; socket reads come later still.
    if (rest.length > 0) queueMicrotask(() => this.#onRead(rest, rest.length, true));
  }

  get streams(): number {
    return this.#streams.size;
  }

  get isClosed(): boolean {
    return this.#isClosed || this.#isClosing;
  }

  /** False while the peer is stopped, or the line is cut. */
  get isResponsive(): boolean {
    return this.#keepAlive.isResponsive;
  }

  get roundTripMs(): number {
    return this.#keepAlive.roundTripMs;
  }

  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  now(): number {
    return performance.now();
  }

  /** Relay: opens a stream to tunnel `tunnel`; null if there are too many or the session ends. */
  openStream(tunnel: number, peer: string): Stream | null {
    if (this.isClosed || this.peerLeaves || this.#streams.size >= this.#options.streamsMax)
      return null;
    const stream = this.#streams.open(this);
    if (stream === null) {
      this.goAway(GoAwayCode.Draining, "all stream ids have been used");
      return null;
    }
    this.#send(FrameType.Open, stream.id, encodeOpen(tunnel, peer));
    if (this.#keepAlive.isQuiet) this.ping();
    return stream;
  }

  /** Sends a JSON message. */
  sendMessage(type: FrameTypeId, message: unknown): void {
    this.#send(type, 0, Buffer.from(JSON.stringify(message)));
  }

  /** Announces that no more streams are opened or accepted. */
  goAway(code: GoAwayCodeId, reason: string): void {
    if (this.isClosed) return;
    this.#end ??= { code, reason };
    this.#send(FrameType.GoAway, 0, encodeGoAway(code, reason));
    this.flush();
  }

  /** Ends the session after GOAWAY; all streams are reset. */
  close(code: GoAwayCodeId, reason: string): void {
    if (this.isClosed) return;
    this.goAway(code, reason);
    this.#isClosing = true;
    this.#socket.end(this.#out.encodeClose(closeStatusOf(code), reason));
    this.#dropStreams();
    // The peer may not read any more.
    const timer = setTimeout(() => this.#socket.destroy(), 1_000).unref();
    this.#socket.once("close", () => clearTimeout(timer));
  }

  /** Ends the session immediately. */
  destroy(): void {
    this.#socket.destroy();
  }

  /** Sends a ping unless one is unanswered. */
  ping(): void {
    const payload = this.isClosed ? undefined : this.#keepAlive.begin();
    if (payload === undefined) return;
    this.#send(FrameType.Ping, 0, payload);
    this.flush();
  }

  /** Keep-alive; called about once a second. */
  sweep(): void {
    if (this.isClosed) return;
    const keepAlive = this.#keepAlive;
    this.#idleFrames = 0;
    if (keepAlive.isLost) {
      this.close(GoAwayCode.Silent, "nothing was received for 30 s");
      return;
    }
    if (keepAlive.isQuiet) {
      this.#ownReads = null;
      this.#out.release();
    }
    if (keepAlive.isDue(this.#streams.size > 0)) this.ping();
  }

  sendData(stream: Stream, bytes: Buffer, bytesMax: number): number {
    if (this.isClosed || this.#socket.writableNeedDrain) return 0;
    const size = Math.min(bytes.length, bytesMax);
    if (size <= COPIED_BYTES_MAX) {
      const part = size === bytes.length ? bytes : bytes.subarray(0, size);
      this.#send(FrameType.Data, stream.id, part);
      return size;
    }
    let sent = 0;
    while (sent < size && !this.#socket.writableNeedDrain) {
      const part = Math.min(size - sent, PAYLOAD_BYTES_MAX);
      this.#out.sendLarge(stream.id, bytes.subarray(sent, sent + part));
      sent += part;
    }
    return sent;
  }

  sendEnd(stream: Stream, delivered: number): void {
    this.#send(FrameType.End, stream.id, encodeEnd(delivered));
  }

  sendReset(stream: Stream, code: ResetCodeId, delivered: number): void {
    this.#send(FrameType.Reset, stream.id, encodeReset(code, delivered));
  }

  sendWindow(stream: Stream, bytes: number): void {
    this.#send(FrameType.Window, stream.id, encodeWindow(bytes));
  }

  addReady(stream: Stream): void {
    if (stream.isReady) return;
    stream.isReady = true;
    this.#ready.push(stream);
    this.#queueFlush();
  }

  forget(stream: Stream, lateBytes: number): void {
    this.#streams.remove(stream, lateBytes);
  }

  keepReads(): void {
    if (this.#areReadsOwn) this.#ownReads = Buffer.allocUnsafeSlow(READ_BYTES);
  }

  /** Writes collected frames and queued bytes as far as the socket accepts them. */
  flush(): void {
    this.#out.flush();
    while (this.#ready.length > 0 && !this.#socket.writableNeedDrain && !this.isClosed) {
      const stream = this.#ready.shift()!;
      const bytesMax = this.#ready.length === 0 ? PAYLOAD_BYTES_MAX : TURN_BYTES;
      if (stream.sendQueued(bytesMax)) this.#ready.push(stream);
      else stream.isReady = false;
    }
    this.#out.flush();
  }

  #send(type: FrameTypeId, stream: number, payload: Buffer): void {
    if (this.isClosed) return;
    if (!this.#out.append(type, stream, payload)) this.#queueFlush();
  }

  #queueFlush(): void {
    if (this.#isFlushQueued) return;
    this.#isFlushQueued = true;
    setImmediate(this.#flushSoon);
  }

  onMessageBytes(bytes: Buffer, start: number, end: number): void {
    this.#frames.push(bytes, start, end);
  }

  onControl(opcode: number, payload: Buffer): void {
    if (opcode !== Opcode.Ping || this.isClosed) return;
    this.#countIdleFrame();
    this.#out.sendControl(Opcode.Pong, payload);
  }

  onCloseFrame(status: number, reason: string): void {
    if (this.isClosed) return;
    this.#end ??= { code: null, reason: reason === "" ? `closed with ${status}` : reason };
    this.#isClosing = true;
    this.#socket.end(this.#out.encodeClose(1000, ""));
    this.#dropStreams();
  }

  onData(id: number, bytes: Buffer, start: number, end: number): void {
    const stream = this.#streams.get(id);
    if (stream !== undefined) {
      stream.onData(bytes, start, end, this.#areReadsOwn);
      return;
    }
    this.#streams.takeLate(id, end - start);
  }

  onFrame(kind: OtherTypeId, id: number, payload: Buffer): void {
    switch (kind) {
      case FrameType.Hello:
        this.#expectRole("relay", kind);
        this.#options.listener.onMessage(kind, payload);
        return;
      case FrameType.Welcome:
      case FrameType.Event:
        this.#expectRole("client", kind);
        this.#options.listener.onMessage(kind, payload);
        return;
      case FrameType.Open:
        this.#expectRole("client", kind);
        this.#onOpen(id, payload);
        return;
      case FrameType.End:
        this.#find(id)?.onEnd(readCount(payload, 0));
        return;
      case FrameType.Reset:
        this.#find(id)?.onReset(readResetCode(payload), readCount(payload, 4));
        return;
      case FrameType.Window:
        this.#onWindow(id, payload.readUInt32BE(0));
        return;
      case FrameType.Ping:
        this.#countIdleFrame();
        this.#send(FrameType.Pong, 0, payload);
        return;
      case FrameType.Pong:
        this.#keepAlive.onPong(payload);
        return;
      case FrameType.GoAway:
        this.#onGoAway(payload);
        return;
      default:
        kind satisfies never;
    }
  }

  #onOpen(id: number, payload: Buffer): void {
    const stream = this.#streams.accept(this, id);
    if (this.#streams.size > this.#options.streamsMax) {
      stream.reset(ResetCode.Overloaded);
      return;
    }
    this.#options.listener.onOpen(stream, payload.readUInt16BE(0), payload.toString("utf8", 2));
  }

  #onWindow(id: number, bytes: number): void {
    if (bytes === 0) throw new WireError("bad_payload", "WINDOW grants no bytes");
    const stream = this.#find(id);
    if (stream !== undefined && !stream.onWindow(bytes)) {
      throw new WireError("bad_payload", `the credit of stream ${id} exceeds 2^31 - 1`);
    }
  }

  #onGoAway(payload: Buffer): void {
    this.peerLeaves = true;
    const code = payload.readUInt32BE(0);
    const reason = payload.toString("utf8", 4);
    this.#end ??= { code, reason };
    this.#options.listener.onGoAway(code, reason);
  }

  /** The stream, or undefined if it is over. */
  #find(id: number): Stream | undefined {
    const stream = this.#streams.find(id);
    if (stream === undefined) this.#countIdleFrame();
    return stream;
  }

  #expectRole(role: SessionOptions["role"], type: FrameTypeId): void {
    if (this.#options.role === role) return;
    throw new WireError("unexpected_frame", `a frame of type ${type} was sent to the wrong side`);
  }

  #countIdleFrame(): void {
    if (++this.#idleFrames <= IDLE_FRAMES_PER_SECOND_MAX) return;
    throw new WireError("too_many_frames", "too many frames without a purpose");
  }

  #listen(): void {
    const socket = this.#socket;
    socket.on("data", (chunk: Buffer) => this.#onRead(chunk, chunk.length, true));
    socket.on("drain", () => this.flush());
    socket.on("end", () => socket.end());
    socket.on("error", (error: Error) => {
      this.#end ??= { code: null, reason: error.message };
    });
    socket.on("close", () => this.#onClosed());
    if ("encrypted" in socket) return;
    const shorten = createReadShortener(() => this.#ownReads ?? sharedReads);
    shorten(socket, (bytes, length, isShared) => {
      this.#onRead(bytes, length, !isShared || bytes === this.#ownReads);
      // A session that receives much reads into its own buffer, so that large pieces need no copy.
      if (length > READ_BYTES / 2) this.#ownReads ??= Buffer.allocUnsafeSlow(READ_BYTES);
    });
  }

  #onRead(bytes: Buffer, length: number, isOwn: boolean): void {
    if (this.#isClosed) return;
    this.#keepAlive.heardMs = this.now();
    this.#areReadsOwn = isOwn;
    try {
      this.#webSocket.push(bytes, 0, length);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.close(GoAwayCode.Protocol, `${error.code}: ${error.message}`);
    }
  }

  #dropStreams(): void {
    this.#ready = [];
    this.#streams.dropAll();
  }

  #onClosed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#dropStreams();
    this.#ownReads = null;
    this.#options.listener.onClose(this.#end ?? { code: null, reason: "the connection was lost" });
  }
}
