// One connection: frames in, handlers in parallel, answers out in the order of the requests.
import type { Socket } from "node:net";
import { setTimeout } from "node:timers/promises";
import { TLSSocket } from "node:tls";
import type { ReadShortener, ReadTaker } from "@platform/kernel/sockets";
import type { SaslExchange } from "../sasl/mechanism.ts";
import { errorCodes } from "../protocol/error-codes.ts";
import { ProtocolError } from "../protocol/error.ts";
import {
  frameLengthBytes,
  readRequestBody,
  readRequestHeader,
  writeResponse,
  type RequestHeader,
} from "../protocol/frame.ts";
import { apiVersions, saslAuthenticate, saslHandshake } from "../protocol/messages/index.ts";
import { Reader } from "../protocol/reader.ts";
import type { ByteBudget } from "./budget.ts";
import { FrameReader } from "./frame-reader.ts";
import type { Exchange, Route, RouteTable } from "./route.ts";
import type { Authentication, Session } from "./session.ts";

/** Frames up to this size are read without asking the budget of requests. */
const smallFrameBytes = 64 * 1024;
/** Bytes that may wait while the frames before them are looked at; then the socket rests. */
const readAheadBytes = 64 * 1024;
/** Requests that a client may make before it has shown who it is. */
const openKeys: ReadonlySet<number> = new Set([
  apiVersions.key,
  saslHandshake.key,
  saslAuthenticate.key,
]);

/** What every connection of a listener shares. */
export interface ConnectionContext {
  routes: RouteTable;
  /** Bytes of large requests that are being read or handled. */
  requestBudget: ByteBudget;
  /** Bytes of answers that are not sent yet. */
  responseBudget: ByteBudget;
  frameBytesMax: number;
  arrayItemsMax: number;
  /** Requests of one connection under way at once; then it is not read any further. */
  inFlightMax: number;
  shortenReads: ReadShortener;
  /** A request was answered, or failed. */
  onRequest(name: string, version: number, durationMs: number): void;
  /** A complete request was followed by bytes of its frame, which are ignored. */
  onSurplus(name: string): void;
  /** The connection is closed because of what the client sent, or because a handler failed. */
  onFault(fault: ConnectionFault): void;
}

/** Why a connection was closed by us. */
export interface ConnectionFault {
  kind: "malformed" | "unsupported" | "unauthenticated" | "internal";
  remoteAddress: string;
  reason: string;
  error?: unknown;
}

/**
 * A request whose answer is not sent yet, in the order of arrival:
 *
 *     │ answered, head │ waiting │ answered │ …       sent from the head on, as far as answered
 */
interface Entry {
  answer: readonly Buffer[] | "none" | undefined;
  /** Budget bytes to give back when the answer has been sent. */
  reserved: number;
  onTurn: (() => void) | undefined;
}

/** Serves one socket until either side closes it. */
export class Connection {
  readonly session: Session;
  readonly #socket: Socket;
  readonly #context: ConnectionContext;
  readonly #frames: FrameReader;
  readonly #queue: Entry[] = [];
  readonly #gone = new AbortController();
  #isReading = false;
  #isResting = false;
  #isClosing = false;
  /** Budget bytes of the frame that is being read. */
  #frameReserved = 0;

  constructor(socket: Socket, session: Session, context: ConnectionContext) {
    this.#socket = socket;
    this.session = session;
    this.#context = context;
    this.#frames = new FrameReader(context.frameBytesMax);
    const onRead: ReadTaker = (bytes, length, isShared) => {
      this.#frames.push(bytes, length, isShared);
      if (this.#isReading) this.#restAbove(readAheadBytes);
      else void this.#read();
    };
    socket.on("data", (chunk: Buffer) => onRead(chunk, chunk.length, false));
    if (!(socket instanceof TLSSocket)) context.shortenReads(socket, onRead);
    socket.once("close", () => this.#end());
    // Whatever happened to it: "close" follows.
    socket.on("error", () => undefined);
  }

  /** Whether it is the broker that has something to do: answers that are made, bytes that wait for room. */
  get isWorking(): boolean {
    const isMaking = this.#queue.length > 0 && this.#socket.writableLength === 0;
    return isMaking || (this.#isReading && this.#socket.writableLength === 0);
  }

  /** Whether the client has begun a request, or has answers to take. */
  get isMidway(): boolean {
    return this.#frames.bytes > 0 || this.#socket.writableLength > 0;
  }

  /** Takes no more requests; closes when what is under way has been answered. */
  drain(): void {
    this.#isClosing = true;
    this.#socket.pause();
    if (this.#queue.length === 0) this.#socket.end();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Starts what has arrived, as far as bounds allow; the socket rests once too much waits. */
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
    if (this.#queue.length >= this.#context.inFlightMax) this.#restAbove(0);
    else if (this.#isResting) {
      this.#isResting = false;
      this.#socket.resume();
    }
  }

  #restAbove(bytes: number): void {
    if (this.#isResting || this.#frames.bytes <= bytes) return;
    this.#isResting = true;
    this.#socket.pause();
  }

  async #readOne(): Promise<boolean> {
    if (this.#queue.length >= this.#context.inFlightMax) return false;
    const { signal } = this.#gone;
    const mutedMs = this.session.mutedUntilMs - performance.now();
    if (mutedMs > 0) await waitFor(mutedMs, signal);
    const length = this.#frames.readLength();
    if (length === undefined) return false;
    if (length > smallFrameBytes && this.#frameReserved === 0) {
      if (!(await this.#context.requestBudget.take(length, signal))) return false;
      this.#frameReserved = length;
      this.#frames.expect();
    }
    const frame = this.#frames.next();
    if (frame === undefined) return false;
    const reserved = this.#frameReserved;
    this.#frameReserved = 0;
    // A client that does not read its answers gets no further ones made.
    const { responseBudget } = this.#context;
    if (responseBudget.used >= responseBudget.total) {
      if (!(await responseBudget.take(1, signal))) return false;
      responseBudget.release(1);
    }
    const handled = this.#start(frame).finally(() => {
      if (reserved > 0) this.#context.requestBudget.release(reserved);
    });
    // Until the client is known its requests are taken one at a time: each depends on the one before.
    if (this.session.authentication.state !== "done") await handled;
    return true;
  }

  async #start(frame: Buffer): Promise<void> {
    const started = performance.now();
    const entry: Entry = { answer: undefined, reserved: 0, onTurn: undefined };
    this.#queue.push(entry);
    const { authentication } = this.session;
    try {
      if (authentication.state === "under way" && authentication.isBare) {
        await this.#authenticateBare(frame, entry, authentication.exchange);
        return;
      }
      const reader = new Reader(frame, this.#context.arrayItemsMax);
      const header = readRequestHeader(reader);
      const found = this.#context.routes.get(header.apiKey);
      if (found === undefined || !isSupported(found, header.apiVersion)) {
        this.#refuseVersion(header, entry);
        return;
      }
      const refusal = openKeys.has(header.apiKey) ? undefined : explainRefusal(authentication);
      if (refusal !== undefined) {
        this.#fail("unauthenticated", `request ${found.message.name} ${refusal}`);
        return;
      }
      const { message } = found;
      const body = readRequestBody(reader, message, header.apiVersion);
      if (reader.remaining > 0) this.#context.onSurplus(message.name);
      const response = await found.handle(body as never, this.#createExchange(header, entry));
      this.#context.onRequest(message.name, header.apiVersion, performance.now() - started);
      const answer =
        response === undefined
          ? "none"
          : writeResponse(message, header.apiVersion, header.correlationId, response);
      this.#answer(entry, answer);
      if (this.session.authentication.state === "refused") this.drain();
    } catch (error) {
      this.#fail(error instanceof ProtocolError ? "malformed" : "internal", error);
    }
  }

  #createExchange(header: RequestHeader, entry: Entry): Exchange {
    const { signal } = this.#gone;
    return {
      session: this.session,
      version: header.apiVersion,
      clientId: header.clientId ?? "",
      signal,
      turn: () => {
        if (this.#queue[0] === entry || signal.aborted) return Promise.resolve();
        return new Promise((resolve) => (entry.onTurn = resolve));
      },
      reserve: async (bytes) => {
        const isGranted = await this.#context.responseBudget.take(bytes, signal);
        if (!isGranted) return false;
        if (signal.aborted) {
          this.#context.responseBudget.release(bytes);
          return false;
        }
        entry.reserved += bytes;
        return true;
      },
    };
  }

  /** KIP-511: ApiVersions of an unknown version is answered in version 0, with what there is. */
  #refuseVersion(header: RequestHeader, entry: Entry): void {
    const name = this.#context.routes.get(header.apiKey)?.message.name ?? `key ${header.apiKey}`;
    if (header.apiKey !== apiVersions.key) {
      this.#fail("unsupported", `request ${name}, version ${header.apiVersion}`);
      return;
    }
    const body = {
      errorCode: errorCodes.unsupportedVersion,
      apiKeys: [
        {
          apiKey: apiVersions.key,
          minVersion: apiVersions.versions[0],
          maxVersion: apiVersions.versions[1],
        },
      ],
    };
    this.#answer(entry, writeResponse(apiVersions, 0, header.correlationId, body));
  }

  /** After SaslHandshake 0 the mechanism's messages are frames of their own, both ways. */
  async #authenticateBare(frame: Buffer, entry: Entry, exchange: SaslExchange): Promise<void> {
    const step = await exchange.step(frame);
    if (step.kind === "failed") {
      // There is no form for an error here: the end of the connection is the answer.
      this.#fail("unauthenticated", step.message);
      return;
    }
    if (step.kind === "done") {
      this.session.authentication = { state: "done", principal: step.principal };
    }
    const length = Buffer.alloc(frameLengthBytes);
    length.writeInt32BE(step.bytes.length);
    this.#answer(entry, [length, step.bytes]);
  }

  #answer(entry: Entry, answer: readonly Buffer[] | "none"): void {
    if (this.#gone.signal.aborted) return;
    entry.answer = answer;
    this.#flush();
    void this.#read();
  }

  #flush(): void {
    if (this.#queue[0]?.answer === undefined) return;
    this.#socket.cork();
    while (this.#queue[0]?.answer !== undefined) this.#send(this.#queue.shift()!);
    this.#socket.uncork();
    this.#queue[0]?.onTurn?.();
    if (this.#isClosing && this.#queue.length === 0) this.#socket.end();
  }

  #send({ answer, reserved }: Entry): void {
    const { responseBudget } = this.#context;
    if (answer === undefined || answer === "none") {
      if (reserved > 0) responseBudget.release(reserved);
      return;
    }
    let bytes = 0;
    for (const part of answer) bytes += part.length;
    // What was reserved was a guess; what is held from now on is known.
    if (bytes > reserved) responseBudget.charge(bytes - reserved);
    else if (bytes < reserved) responseBudget.release(reserved - bytes);
    for (const [index, part] of answer.entries()) {
      // The callback comes when the bytes are out, and with an error when they never will be.
      if (index < answer.length - 1) this.#socket.write(part);
      else this.#socket.write(part, () => responseBudget.release(bytes));
    }
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
    this.#socket.destroy();
  }

  #end(): void {
    this.#isClosing = true;
    this.#gone.abort();
    for (const { reserved, onTurn } of this.#queue) {
      if (reserved > 0) this.#context.responseBudget.release(reserved);
      onTurn?.();
    }
    this.#queue.length = 0;
    if (this.#frameReserved > 0) this.#context.requestBudget.release(this.#frameReserved);
    this.#frameReserved = 0;
  }
}

/** Why a client may not ask for more than a way in; undefined if it may. */
function explainRefusal(authentication: Authentication): string | undefined {
  if (authentication.state !== "done") return "before authentication";
  const { expiresAtMs } = authentication.principal;
  if (expiresAtMs === undefined || expiresAtMs > Date.now()) return undefined;
  return "after the client's token has ended";
}

/** Resolves after `ms`, or when `signal` fires. */
function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  return setTimeout(ms, undefined, { signal, ref: false }).catch(() => undefined);
}

function isSupported({ message }: Route, version: number): boolean {
  return version >= message.versions[0] && version <= message.versions[1];
}
