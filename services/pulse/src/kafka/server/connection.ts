// One connection: reads frames, runs handlers in parallel, answers in the order of the requests.
import { setTimeout } from "node:timers/promises";
import { Pace, type OutgoingFault, type ReadTaker } from "@platform/kernel/sockets";
import type { WireConnection } from "../../connection/listeners.ts";
import type { SocketTransport } from "../../connection/transport.ts";
import type { SaslExchange } from "../sasl/mechanism.ts";
import { ERROR_CODES } from "../protocol/error-codes.ts";
import { ProtocolError } from "../protocol/error.ts";
import {
  FRAME_LENGTH_BYTES,
  readRequestBody,
  readRequestHeader,
  writeResponse,
  type RequestHeader,
} from "../protocol/frame.ts";
import { apiVersions } from "../protocol/messages/index.ts";
import { Reader } from "../protocol/reader.ts";
import { AnswerQueue, type PendingAnswer } from "./answer-queue.ts";
import type { ConnectionContext, ConnectionFault } from "./connection-context.ts";
import { FrameReader } from "./frame-reader.ts";
import { orderOf, PendingChanges } from "./request-order.ts";
import type { RequestContext, Route } from "./route.ts";
import {
  admitUser,
  explainRefusal,
  isIntroduced,
  TOO_MANY_CONNECTIONS,
  type Session,
} from "./session.ts";
import { TokenWatch } from "./token-watch.ts";

/** Frames up to this size do not count against the budget of requests. */
const SMALL_FRAME_BYTES = 64 * 1024;
/** Unprocessed bytes at which reading from the socket pauses. */
const READ_AHEAD_BYTES = 64 * 1024;
/** Answer to a Fetch that needs no room: the system's buffers hold as much for a client that keeps up. */
const SMALL_ANSWER_BYTES = 64 * 1024;
/** Longest wait of a Fetch for room, then its answer is empty: the longest quota pause, well within clients' timeouts. */
const ROOM_WAIT_MS = 10_000;

/** Serves a socket until either side closes it. */
export class Connection implements WireConnection {
  readonly session: Session;
  readonly #transport: SocketTransport;
  readonly #context: ConnectionContext;
  readonly #frames: FrameReader;
  readonly #answers: AnswerQueue;
  readonly #changes = new PendingChanges();
  readonly #gone = new AbortController();
  readonly #requestPace = new Pace();
  readonly #tokenWatch: TokenWatch;
  #isReading = false;
  #isResting = false;
  #isClosing = false;
  /** Budget bytes of the frame being read. */
  #frameReserved = 0;
  /** True if the client had begun a request at the last sweep and has not completed it since. */
  #isMidRequest = false;
  readonly #openedAtMs = performance.now();
  #idleSinceMs = performance.now();
  #readBytes = 0;

  constructor(transport: SocketTransport, session: Session, context: ConnectionContext) {
    this.#transport = transport;
    this.session = session;
    this.#context = context;
    this.#frames = new FrameReader(context.frameBytesMax);
    this.#answers = new AnswerQueue(transport, {
      onProgress: () => {
        if (this.#isClosing) this.#endIfAnswered();
        else void this.#read();
      },
      onError: (error) => this.#fail("internal", error),
    });
    this.#tokenWatch = new TokenWatch(context.followToken, () =>
      this.#fail("unauthenticated", "the client's token was revoked"),
    );
    const { authentication, user } = session;
    if (authentication.state === "done" && !user.change(authentication.principal)) {
      this.#fail("unauthenticated", TOO_MANY_CONNECTIONS);
    }
  }

  readonly onRead: ReadTaker = (bytes, length, isShared) => {
    if (this.#isClosing) return;
    this.#frames.push(bytes, length, isShared);
    if (this.#isReading) this.#restAbove(READ_AHEAD_BYTES);
    else void this.#read();
  };

  onDrain(): void {
    this.#answers.progress();
  }

  onClose(): void {
    this.#isClosing = true;
    this.#tokenWatch.stop();
    this.session.user.release();
    this.#gone.abort();
    this.#answers.close();
    if (this.#frameReserved > 0) this.#context.requestBudget.release(this.#frameReserved);
    this.#frameReserved = 0;
  }

  drop(fault: OutgoingFault): void {
    this.#fail(fault, `answers are not read: ${fault}`);
  }

  /**
   * Closes the connection if the client has stopped within a request or has been idle for too long. A client with unread
   * answers is only judged by its reading, in the sweep of the budget. `elapsedMs`: time since the last sweep.
   */
  sweep(nowMs: number, elapsedMs: number): void {
    this.#answers.settle();
    const bytesRead = this.#transport.receivedBytes;
    const isLate = nowMs - this.#openedAtMs >= this.#context.authenticationTimeoutMs;
    const isStranger = isLate && !isIntroduced(this.session, bytesRead);
    const isOurTurn = this.#isReading || this.#answers.size > 0;
    if (isOurTurn || this.#answers.isUnread || bytesRead !== this.#readBytes) {
      this.#idleSinceMs = nowMs;
    }
    this.#readBytes = bytesRead;
    if (isStranger || nowMs - this.#idleSinceMs >= this.#context.idleTimeoutMs) {
      this.#transport.destroy();
      return;
    }
    const wasMidRequest = this.#isMidRequest;
    this.#isMidRequest = this.#frames.bytes > 0 && !isOurTurn && !this.#answers.isUnread;
    if (!this.#isMidRequest) return;
    if (!wasMidRequest) this.#requestPace.restart(bytesRead);
    else if (this.#requestPace.isTooSlow(this.#context.requestPace, elapsedMs, bytesRead)) {
      this.#fail("slow-request", "a request does not arrive");
    }
  }

  /** Accepts no more requests; closes once those in flight are answered. */
  shutDown(): void {
    this.#isClosing = true;
    this.#transport.pause();
    this.#endIfAnswered();
  }

  /** Starts received requests within the limits; reading pauses if too much is unprocessed. */
  async #read(): Promise<void> {
    if (this.#isReading || this.#isClosing) return;
    this.#isReading = true;
    try {
      while (!this.#isClosing && (await this.#readOne()));
    } catch (error) {
      this.#fail("malformed", error);
      return;
    }
    this.#isReading = false;
    if (this.#isClosing) return;
    if (this.#isHeldBack) this.#restAbove(0);
    else if (this.#isResting) {
      this.#isResting = false;
      this.#transport.resume();
    }
  }

  /** True if the client must read answers before further requests start. */
  get #isHeldBack(): boolean {
    return this.#answers.isHeldBack || this.#answers.size >= this.#context.inFlightMax;
  }

  #restAbove(bytes: number): void {
    if (this.#isResting || this.#frames.bytes <= bytes) return;
    this.#isResting = true;
    this.#transport.pause();
  }

  async #readOne(): Promise<boolean> {
    if (this.#isHeldBack) return false;
    const { signal } = this.#gone;
    const mutedMs = this.session.mutedUntilMs - performance.now();
    if (mutedMs > 0) await waitFor(mutedMs, signal);
    const length = this.#frames.readLength();
    if (length === undefined) return false;
    if (length > SMALL_FRAME_BYTES && this.#frameReserved === 0) {
      if (!(await this.#context.requestBudget.take(length, signal))) return false;
      this.#frameReserved = length;
      this.#frames.expect();
    }
    const frame = this.#frames.next();
    if (frame === undefined) return false;
    const reserved = this.#frameReserved;
    this.#frameReserved = 0;
    this.#isMidRequest = false;
    const handled = this.#start(frame).finally(() => {
      if (reserved > 0) this.#context.requestBudget.release(reserved);
    });
    // Before authentication requests are handled one at a time, since each depends on the previous one.
    if (this.session.authentication.state !== "done") await handled;
    return true;
  }

  async #start(frame: Buffer): Promise<void> {
    const started = performance.now();
    const entry = this.#answers.add();
    let endChange: (() => void) | undefined;
    const { authentication } = this.session;
    try {
      if (authentication.state === "under way" && authentication.isBare) {
        await this.#authenticateBare(frame, entry, authentication.exchange);
        return;
      }
      const reader = new Reader(frame, this.#context.arrayItemsMax);
      const header = readRequestHeader(reader);
      this.session.clientId = header.clientId ?? this.session.clientId;
      const found = this.#context.routes.get(header.apiKey);
      if (found === undefined || !isSupported(found, header.apiVersion)) {
        this.#refuseVersion(header, entry);
        return;
      }
      const isPublic = found.requires === "public";
      const refusal = isPublic ? undefined : explainRefusal(authentication);
      if (refusal !== undefined) {
        this.#fail("unauthenticated", `request ${found.message.name} ${refusal}`);
        return;
      }
      const { message } = found;
      const body = readRequestBody(reader, message, header.apiVersion);
      if (reader.remaining > 0) this.#context.onSurplus(message.name);
      const { followsChanges, isChange, takesTurn } = orderOf(message.key);
      const earlier = followsChanges ? this.#changes.follow() : undefined;
      if (isChange) endChange = this.#changes.begin();
      if (earlier !== undefined) await earlier;
      if (takesTurn) {
        await this.#answers.turn(entry);
        if (!(await this.#enterRoom(entry))) return;
      }
      const response = await found.handle(body as never, this.#createExchange(header, entry));
      this.#context.onRequest(message.name, header.apiVersion, performance.now() - started);
      const { apiVersion, correlationId } = header;
      this.#answers.answer(
        entry,
        response === undefined
          ? "none"
          : () => writeResponse(message, apiVersion, correlationId, response),
      );
      if (this.session.authentication.state === "refused") this.shutDown();
      if (isPublic) this.#tokenWatch.update(this.session.authentication);
    } catch (error) {
      this.#fail(error instanceof ProtocolError ? "malformed" : "internal", error);
    } finally {
      endChange?.();
    }
  }

  #createExchange(header: RequestHeader, entry: PendingAnswer): RequestContext {
    const { signal } = this.#gone;
    return {
      session: this.session,
      version: header.apiVersion,
      clientId: header.clientId ?? "",
      signal,
      turn: () => this.#answers.turn(entry),
      onSent: (run) => {
        entry.onSent = run;
      },
      reserve: async (bytes, pieceBytes) => {
        const { outgoing } = this.#context;
        entry.release?.();
        entry.release = undefined;
        if (!(await this.#enterRoom(entry, ROOM_WAIT_MS))) return 0;
        if (!(await this.#beginReading(entry, Math.max(bytes, pieceBytes)))) return 0;
        return outgoing.isTight ? Math.min(bytes, outgoing.windowBytes) : bytes;
      },
      reserveSmall: async (pieceBytes) => {
        if (!this.#context.room.isCrowded) return 0;
        return (await this.#beginReading(entry, pieceBytes)) ? SMALL_ANSWER_BYTES : 0;
      },
    };
  }

  /** Waits until `bytes` may be read from the log for an answer, which returns them. False if the connection is gone. */
  async #beginReading(entry: PendingAnswer, bytes: number): Promise<boolean> {
    const { readingBudget } = this.#context;
    const { signal } = this.#gone;
    if (!(await readingBudget.take(bytes, signal))) return false;
    return this.#hold(entry, () => readingBudget.release(bytes));
  }

  /** Waits until clients have read enough. False after `timeoutMs`, or if the connection is gone. */
  async #enterRoom(entry: PendingAnswer, timeoutMs?: number): Promise<boolean> {
    const leave = await this.#context.room.enter(this.#gone.signal, timeoutMs);
    return leave !== undefined && this.#hold(entry, leave);
  }

  /** Calls `release` when the answer was written or dropped; returns false if it is dropped already. */
  #hold(entry: PendingAnswer, release: () => void): boolean {
    if (this.#gone.signal.aborted) {
      release();
      return false;
    }
    const before = entry.release;
    entry.release =
      before === undefined
        ? release
        : () => {
            before();
            release();
          };
    return true;
  }

  /** KIP-511: ApiVersions of an unknown version is answered in version 0, with the supported versions. */
  #refuseVersion(header: RequestHeader, entry: PendingAnswer): void {
    const name = this.#context.routes.get(header.apiKey)?.message.name ?? `key ${header.apiKey}`;
    if (header.apiKey !== apiVersions.key) {
      this.#fail("unsupported", `request ${name}, version ${header.apiVersion}`);
      return;
    }
    const body = {
      errorCode: ERROR_CODES.unsupportedVersion,
      apiKeys: [
        {
          apiKey: apiVersions.key,
          minVersion: apiVersions.versions[0],
          maxVersion: apiVersions.versions[1],
        },
      ],
    };
    this.#answers.answer(entry, () => writeResponse(apiVersions, 0, header.correlationId, body));
  }

  /** After SaslHandshake 0 the mechanism's messages are bare frames in both directions. */
  async #authenticateBare(
    frame: Buffer,
    entry: PendingAnswer,
    exchange: SaslExchange,
  ): Promise<void> {
    const step = await exchange.step(frame);
    if (step.kind === "failed") {
      // This form has no errors: the closed connection is the answer.
      this.#fail("unauthenticated", step.message);
      return;
    }
    if (step.kind === "done") {
      if (!admitUser(this.session, step.principal)) {
        this.#fail("unauthenticated", TOO_MANY_CONNECTIONS);
        return;
      }
      this.#tokenWatch.update(this.session.authentication);
    }
    const length = Buffer.alloc(FRAME_LENGTH_BYTES);
    length.writeInt32BE(step.bytes.length);
    this.#answers.answer(entry, () => [length, step.bytes]);
  }

  /** Closes once nothing is left to answer. Further bytes are dropped, so that the client's end is detected. */
  #endIfAnswered(): void {
    if (this.#answers.size > 0 || this.#transport.socket.writableEnded) return;
    this.#transport.end();
  }

  #fail(kind: ConnectionFault["kind"], error: unknown): void {
    if (this.#gone.signal.aborted) return;
    this.#isClosing = true;
    this.#context.onFault({
      kind,
      remoteAddress: this.session.remoteAddress,
      reason: error instanceof Error ? error.message : String(error),
      ...(kind === "internal" ? { error } : {}),
    });
    this.#transport.destroy();
  }
}

/** Resolves after `ms`, or when `signal` fires. */
function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  return setTimeout(ms, undefined, { signal, ref: false }).catch(() => undefined);
}

function isSupported({ message }: Route, version: number): boolean {
  return version >= message.versions[0] && version <= message.versions[1];
}
