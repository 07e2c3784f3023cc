// One connection of a STOMP client: reads frames in order, writes frames, ends with an ERROR frame that says why.
import { setTimeout as sleep } from "node:timers/promises";
import type { Outflow, ReadTaker } from "@platform/kernel/sockets";
import type { Transport } from "../../connection/transport.ts";
import type { WireConnection } from "../../connection/listeners.ts";
import { encodeFrame, type Frame, type Header } from "../frame/frame.ts";
import { FrameReader } from "../frame/frame-reader.ts";
import { StompError } from "../frame/stomp-error.ts";
import type { StompVersion } from "../frame/version.ts";
import { isBeatDue, isBeatMissing, type HeartBeat } from "../heart-beat.ts";
import type { MessageEncoder } from "../message-form.ts";
import {
  FrameFault,
  isBatched,
  Session,
  toStompError,
  type SessionConnection,
} from "../session.ts";
import { acceptClient } from "./connecting.ts";
import type { ConnectionContext } from "./connection-context.ts";
import { describeError } from "./error-frame.ts";
import { FramePace } from "./frame-pace.ts";

/** Unsent bytes at which no more messages are sent to the client. */
const UNSENT_BYTES_MAX = 64 * 1024;
/** Unprocessed bytes at which reading pauses. */
const READ_AHEAD_BYTES = 64 * 1024;
/** Bodies up to this size do not count against the budget of large frames. */
const SMALL_BODY_BYTES = 64 * 1024;
/** A batch ends with the frame that reaches one of these. */
const BATCH_FRAMES_MAX = 1_000;
const BATCH_BYTES_MAX = 256 * 1024;
/** Time that a client has to close after an ERROR. */
const LINGER_MS = 5_000;
/** The same when the broker stops, which waits for it. */
const STOPPING_LINGER_MS = 250;
const LINE_END = Buffer.from("\n");

/** Serves a transport until either side closes it. */
export class Connection implements WireConnection, SessionConnection {
  version: StompVersion = "1.0";
  readonly encoder: MessageEncoder;
  readonly #transport: Transport;
  readonly #context: ConnectionContext;
  readonly #frames: FrameReader;
  readonly #gone = new AbortController();
  readonly #pace = new FramePace();
  readonly #openedMs = performance.now();
  #phase: "new" | "open" | "closed" = "new";
  #session: Session | undefined;
  #heartBeat: HeartBeat = { sendMs: 0, receiveMs: 0 };
  #expiresAtMs = Number.POSITIVE_INFINITY;
  #release: () => void = () => undefined;
  /** Frames to be written at the end of the turn. */
  #out: Buffer[] = [];
  #outBytes = 0;
  #onSent: (() => void)[] = [];
  #isBlocked = false;
  #isWorking = false;
  #isPaused = false;
  #isStopping = false;
  /** Budget bytes of the frame that is being received, and of those that are being handled. */
  #reservedBytes = 0;
  #handledBytes = 0;
  #deliveries = 0;
  #lastReceivedMs = performance.now();
  #lastSentMs = performance.now();
  #closedMs = 0;
  /** True if the transport has closed: nothing is written any more. */
  #isGone = false;

  constructor(transport: Transport, context: ConnectionContext) {
    this.#transport = transport;
    this.#context = context;
    this.encoder = context.encoder;
    this.#frames = new FrameReader(context.frameLimits);
  }

  get outflow(): Outflow | undefined {
    return this.#transport.outflow;
  }

  readonly onRead: ReadTaker = (bytes, length, isShared) => {
    if (this.#phase === "closed") return;
    this.#lastReceivedMs = performance.now();
    this.#frames.push(isShared ? Buffer.from(bytes.subarray(0, length)) : bytes);
    if (this.#isWorking) this.#pauseAbove(READ_AHEAD_BYTES);
    else void this.#work();
  };

  /** The transport has closed. What has arrived still takes effect. */
  onClose(): void {
    this.#isGone = true;
    if (!this.#isWorking) this.#close();
  }

  drop(reason: string): void {
    if (this.#phase === "closed") return;
    this.#report(new StompError("silent", `messages are not read: ${reason}`));
    this.#close();
    this.#transport.destroy();
  }

  sweep(nowMs: number, elapsedMs: number, sweepMs: number): void {
    this.outflow?.settle();
    if (this.#phase === "closed") {
      const lingerMs = this.#isStopping ? STOPPING_LINGER_MS : LINGER_MS;
      if (nowMs - this.#closedMs > lingerMs) this.#transport.destroy();
      return;
    }
    const fault = this.#findFault(nowMs, elapsedMs);
    if (fault !== undefined) {
      this.#end(fault);
      return;
    }
    this.#session?.pump();
    const isSilent = this.#outBytes === 0 && this.#transport.unsentBytes === 0;
    if (isSilent && isBeatDue(this.#heartBeat, nowMs - this.#lastSentMs, sweepMs)) {
      this.send(LINE_END);
    }
  }

  endIfForbidden(): void {
    if (this.#session?.isAllowed !== false) return;
    this.#end(new StompError("forbidden", "the right to subscribe was withdrawn"));
  }

  shutDown(): void {
    this.#isStopping = true;
    if (!this.#isWorking) this.#end(createStopping());
  }

  canSend(): boolean {
    const isOpen = this.#phase === "open" && !this.#isGone;
    const canSend = isOpen && this.#outBytes + this.#transport.unsentBytes < UNSENT_BYTES_MAX;
    if (!canSend) this.#isBlocked = true;
    return canSend;
  }

  send(frame: Buffer, onSent?: () => void): void {
    if (this.#phase === "closed" || this.#isGone) return;
    // After all promise callbacks of this turn, which may write more.
    if (this.#out.length === 0) process.nextTick(() => this.#flush());
    this.#out.push(frame);
    this.#outBytes += frame.length;
    if (onSent !== undefined) this.#onSent.push(onSent);
  }

  sendReceipt(id: string): void {
    this.#sendFrame("RECEIPT", [["receipt-id", id]]);
  }

  nextDelivery(): number {
    return ++this.#deliveries;
  }

  async pause(ms: number): Promise<void> {
    const { signal } = this.#gone;
    this.#context.onThrottled();
    await sleep(ms, undefined, { signal, ref: false }).catch(() => undefined);
  }

  disconnect(): void {
    this.#flush();
    this.#close();
    this.#transport.end();
  }

  fail(reason: string): void {
    this.#end(new StompError("refused", reason));
  }

  /** Handles received frames one after the other; SEND, ACK and NACK in batches. */
  async #work(): Promise<void> {
    this.#isWorking = true;
    try {
      while (this.#phase !== "closed" && !this.#isStopping && (await this.#workOnce()));
    } catch (error) {
      this.#endWith(error);
    }
    this.#isWorking = false;
    if (this.#isStopping) this.#end(createStopping());
    else if (this.#isGone) this.#close();
    else this.#resume();
  }

  /** False if no frame is complete. */
  async #workOnce(): Promise<boolean> {
    if (!(await this.#reserve())) return false;
    const first = this.#frames.next();
    if (first === undefined) return this.#frames.bodyBytesMax !== undefined && this.#mustReserve;
    try {
      this.#takeReservation();
      if (this.#session === undefined) await this.#connect(first);
      else if (isBatched(first)) await this.#handleBatch(this.#session, first);
      else {
        this.#context.onFrame(first.command);
        await this.#session.handle(first);
      }
    } finally {
      if (this.#handledBytes > 0) this.#context.frameBudget.release(this.#handledBytes);
      this.#handledBytes = 0;
    }
    return true;
  }

  async #handleBatch(session: Session, first: Frame): Promise<void> {
    const batch = [first];
    let next: Frame | undefined;
    let fault: unknown;
    try {
      let bytes = first.body.length;
      while (batch.length < BATCH_FRAMES_MAX && bytes < BATCH_BYTES_MAX) {
        next = this.#frames.next();
        if (next === undefined) break;
        this.#takeReservation();
        if (!isBatched(next)) break;
        batch.push(next);
        bytes += next.body.length;
        next = undefined;
      }
    } catch (error) {
      // Frames before the malformed bytes are handled.
      fault = error;
    }
    for (const { command } of batch) this.#context.onFrame(command);
    await session.handleBatch(batch);
    if (fault !== undefined) throw fault;
    if (next === undefined) return;
    this.#context.onFrame(next.command);
    await session.handle(next);
  }

  /** True if the frame that is being received is large and has no budget yet. */
  get #mustReserve(): boolean {
    const { bodyBytesMax } = this.#frames;
    return bodyBytesMax !== undefined && this.#reservedBytes === 0 && this.#isLarge(bodyBytesMax);
  }

  // A body without content-length is large once it has become so.
  #isLarge(bodyBytesMax: number): boolean {
    return bodyBytesMax > SMALL_BODY_BYTES && this.#frames.bytes > SMALL_BODY_BYTES;
  }

  /** Waits for the budget of a large frame. False if the connection is gone. */
  async #reserve(): Promise<boolean> {
    if (!this.#mustReserve) return true;
    const bytes = this.#frames.bodyBytesMax!;
    if (!(await this.#context.frameBudget.take(bytes, this.#gone.signal))) return false;
    this.#reservedBytes = bytes;
    return true;
  }

  #takeReservation(): void {
    this.#handledBytes += this.#reservedBytes;
    this.#reservedBytes = 0;
    this.#pace.noteFrame();
  }

  async #connect(frame: Frame): Promise<void> {
    this.#context.onFrame(frame.command);
    try {
      const accepted = await acceptClient(this.#context, this.#transport, frame);
      if (this.#isClosed) {
        accepted.release();
        return;
      }
      const { principal, clientId, version } = accepted;
      this.version = version;
      this.#frames.version = version;
      this.#heartBeat = accepted.heartBeat;
      this.#expiresAtMs = principal.expiresAtMs ?? Number.POSITIVE_INFINITY;
      const forget =
        principal.token === undefined
          ? () => undefined
          : this.#context.followToken(principal.token, () =>
              this.#end(new StompError("unauthenticated", "the token was revoked")),
            );
      this.#release = () => {
        forget();
        accepted.release();
      };
      this.#phase = "open";
      const session = new Session(this, this.#context.parts, principal, clientId);
      this.#transport.describeClient = () => session.describeClient();
      this.#session = session;
      this.#sendFrame("CONNECTED", accepted.headers);
    } catch (error) {
      throw new FrameFault(frame, error);
    }
  }

  get #isClosed(): boolean {
    return this.#phase === "closed";
  }

  #pauseAbove(bytes: number): void {
    if (this.#isPaused || this.#frames.bytes <= bytes) return;
    this.#isPaused = true;
    this.#transport.pause();
  }

  #resume(): void {
    if (!this.#isPaused || this.#phase === "closed") return;
    this.#isPaused = false;
    this.#lastReceivedMs = performance.now();
    this.#transport.resume();
  }

  #flush(): void {
    const out = this.#out;
    if (out.length === 0) return;
    const onSent = this.#onSent;
    this.#out = [];
    this.#onSent = [];
    this.#outBytes = 0;
    if (this.#isGone) return;
    this.#lastSentMs = performance.now();
    this.#transport.write(out, () => this.#noteSent(onSent));
    this.outflow?.settle();
  }

  #noteSent(onSent: readonly (() => void)[]): void {
    this.outflow?.settle();
    for (const done of onSent) done();
    if (!this.#isBlocked || this.#phase !== "open") return;
    this.#isBlocked = false;
    this.#session?.pump();
  }

  #sendFrame(command: string, headers: Iterable<Header>, body?: Buffer): void {
    this.send(encodeFrame(command, headers, this.version, body));
  }

  #findFault(nowMs: number, elapsedMs: number): StompError | undefined {
    const { connectTimeoutMs, idleTimeoutMs } = this.#context;
    if (this.#phase === "new") {
      if (nowMs - this.#openedMs < connectTimeoutMs) return undefined;
      return new StompError("silent", `no CONNECT has arrived within ${connectTimeoutMs} ms`);
    }
    if (Date.now() >= this.#expiresAtMs) {
      return new StompError("unauthenticated", "the token has expired");
    }
    const isOurTurn = this.#isWorking || this.#isPaused;
    const silentMs = isOurTurn ? 0 : nowMs - this.#lastReceivedMs;
    if (isBeatMissing(this.#heartBeat, silentMs)) {
      return new StompError("silent", "no heart-beat has arrived");
    }
    const mayIdle = this.#heartBeat.receiveMs > 0 || this.#session?.hasSubscriptions === true;
    if (!mayIdle && silentMs > idleTimeoutMs) {
      return new StompError("silent", `the connection was idle for ${idleTimeoutMs} ms`);
    }
    const isMidFrame = this.#frames.bytes > 0 && !isOurTurn;
    return this.#pace.isTooSlow(isMidFrame, elapsedMs, this.#transport.receivedBytes)
      ? new StompError("silent", "a frame does not arrive")
      : undefined;
  }

  #endWith(thrown: unknown): void {
    if (thrown instanceof FrameFault) this.#end(toStompError(thrown.cause), thrown.frame);
    else this.#end(toStompError(thrown));
  }

  /** Sends an ERROR frame and closes (STOMP 1.2, "ERROR"). */
  #end(error: StompError, frame?: Frame): void {
    if (this.#phase === "closed") return;
    this.#report(error);
    const { headers, body } = describeError(error, frame);
    this.#sendFrame("ERROR", headers, body);
    this.disconnect();
  }

  #report(error: StompError): void {
    this.#context.onFault({
      kind: error.kind,
      remoteAddress: this.#transport.remoteAddress,
      reason: error.message,
      ...(error.kind === "internal" ? { error: error.cause } : {}),
    });
  }

  #close(): void {
    if (this.#phase === "closed") return;
    this.#phase = "closed";
    this.#closedMs = performance.now();
    this.#gone.abort();
    this.#release();
    this.#session?.close();
    if (this.#reservedBytes > 0) this.#context.frameBudget.release(this.#reservedBytes);
    this.#reservedBytes = 0;
  }
}

function createStopping(): StompError {
  return new StompError("stopping", "the broker is stopping");
}
