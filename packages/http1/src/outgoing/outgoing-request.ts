// A request that this program sends for itself, on a connection of a pool: the client's side of RFC 9112.
import type { UpstreamPool } from "../contract/upstream.ts";
import type { Engine, Swept } from "../engine/engine.ts";
import {
  Chunk,
  ChunkedDecoder,
  type FieldBlock,
  findMethod,
  Framing,
  Parse,
  type ResponseParser,
} from "../parse/index.ts";
import { type AcquireFailure, type Acquirer, Reuse, type ReuseKind } from "../upstream/acquire.ts";
import type { UpstreamConnection, UpstreamUser } from "../upstream/connection.ts";
import type { ConnectionPool } from "../upstream/pool.ts";
import { composeRequest } from "./compose-request.ts";
import { ContentQueue, type ContentOwner } from "./content-queue.ts";
import {
  type OutgoingAnswer,
  type OutgoingCall,
  OutgoingError,
  type OutgoingFailure,
  type OutgoingRequest,
} from "./outgoing-call.ts";

const INFORMATIONAL_MAX = 16;
/** A body up to this size is sent with its head. */
const JOINED_BYTES_MAX = 16_384;

/** Sends a request. Throws a TypeError for fields that cannot be sent. */
export function sendRequest(
  engine: Engine,
  pool: UpstreamPool,
  request: OutgoingRequest,
): OutgoingCall {
  return new PooledCall(engine, pool as ConnectionPool, request);
}

/**
 * ```text
 *   acquiring --connection--> sending --head--> receiving --end of the content--> over
 *        \______________________\_________________\--failure-----------------------/
 * ```
 */
class PooledCall implements OutgoingCall, Acquirer, UpstreamUser, ContentOwner, Swept {
  readonly answer: Promise<OutgoingAnswer>;
  isStale = false;
  waitingSinceMs = 0;
  reuse: ReuseKind = Reuse.Any;
  readonly #engine: Engine;
  readonly #pool: ConnectionPool;
  readonly #request: OutgoingRequest;
  readonly #head: Buffer;
  readonly #answered = Promise.withResolvers<OutgoingAnswer>();
  #connection: UpstreamConnection | null = null;
  #content: ContentQueue | null = null;
  #decoder: ChunkedDecoder | null = null;
  #deadlineMs = Infinity;
  #informational = 0;
  /** The whole request was written. */
  #isSent = false;
  /** Bytes came that belong to no response. */
  #isDirty = false;
  /** The connection had been idle. */
  #isOnKept = false;
  #isOver = false;
  #onDrain: (() => void) | null = null;

  constructor(engine: Engine, pool: ConnectionPool, request: OutgoingRequest) {
    this.#engine = engine;
    this.#pool = pool;
    this.#request = request;
    this.#head = composeRequest(request.method, request.target, request.headers);
    this.answer = this.#answered.promise;
    // The one who destroys a call need not await its answer.
    this.answer.catch(() => undefined);
    engine.add(this);
    this.onWaiting(true);
    const isFresh = request.mayReuse === false || isStream(request.body);
    const connection = pool.acquire(this, isFresh ? Reuse.Never : Reuse.Any);
    if (connection !== null) this.onAcquired(connection);
  }

  onAcquired(connection: UpstreamConnection): void {
    this.#connection = connection;
    this.#isOnKept = connection.wasIdle;
    connection.user = this;
    connection.holdProcess(true);
    connection.parser.expect(findMethod(this.#head, 0, this.#request.method.length));
    this.#send(connection);
  }

  onAcquireFailed(kind: AcquireFailure, code: string): void {
    this.#fail(kind, code);
  }

  onUpstreamBytes(bytes: Buffer, length: number): void {
    if (this.#deadlineMs !== Infinity) this.onWaiting(true);
    let at = 0;
    while (this.#content === null) {
      const { parser } = this.#connection!;
      const status = parser.execute(bytes, at, length);
      if (status === Parse.NeedsMore) return;
      if (status === Parse.Refused) {
        this.#fail("malformed-response", parser.refusal!.code);
        return;
      }
      at = parser.next;
      if (!parser.informational) this.#begin(parser, at < length);
      else if (++this.#informational > INFORMATIONAL_MAX) {
        this.#fail("malformed-response", "too_many_informational_responses");
      } else parser.reset();
      if (this.#isOver || at === length) return;
    }
    this.#take(bytes, at, length);
  }

  onUpstreamEnd(): void {
    const isEnd = this.#connection?.parser.framing === Framing.UntilClose;
    if (this.#content !== null && isEnd) this.#complete();
    else this.#fail(this.#content === null ? "no-response" : "truncated");
  }

  onUpstreamClosed(code: string): void {
    this.#fail(this.#content === null ? "no-response" : "truncated", code);
  }

  onUpstreamDrain(): void {
    this.#onDrain?.();
  }

  onWaiting(isWaiting: boolean): void {
    this.#deadlineMs = isWaiting ? this.#engine.deadlineIn(this.#request.stallMs) : Infinity;
  }

  onAbandoned(kind: OutgoingFailure): void {
    this.#fail(kind);
  }

  sweep(nowMs: number): void {
    if (nowMs >= this.#deadlineMs) this.#fail("stalled");
  }

  destroy(): void {
    this.#fail("destroyed");
  }

  #send({ socket }: UpstreamConnection): void {
    const { body } = this.#request;
    if (body === undefined) socket.write(this.#head);
    else if (isStream(body)) {
      socket.write(this.#head);
      void this.#sendStream(body);
      return;
    } else if (body.length <= JOINED_BYTES_MAX) socket.write(Buffer.concat([this.#head, body]));
    else {
      socket.write(this.#head);
      socket.write(body);
    }
    this.#isSent = true;
  }

  // The source may take any time; the server may answer before it has everything.
  async #sendStream(body: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const chunk of body) {
        const connection = this.#connection;
        if (connection === null) return;
        if (this.#content === null) this.onWaiting(false);
        if (connection.socket.write(chunk)) continue;
        if (this.#content === null) this.onWaiting(true);
        await this.#drain();
        if (this.#content === null) this.onWaiting(false);
      }
      this.#isSent = true;
      if (this.#content === null) this.onWaiting(true);
    } catch (error) {
      this.#fail("destroyed", "", error);
    }
  }

  async #drain(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onDrain = resolve;
    await promise;
    this.#onDrain = null;
  }

  #begin(parser: ResponseParser, isFollowed: boolean): void {
    const { status, framing, contentLength, fields } = parser;
    if (framing === Framing.Tunnel) {
      this.#fail("malformed-response", "unexpected_upgrade");
      return;
    }
    const hasLength = framing === Framing.Length;
    const memory = hasLength ? this.#request.findMemory?.(contentLength) : null;
    const content = new ContentQueue(
      this,
      this.#connection!,
      hasLength ? contentLength : -1,
      memory ?? null,
      this.#request.pace,
    );
    this.#content = content;
    if (framing === Framing.Chunked) this.#decoder = new ChunkedDecoder();
    // From here on only a reader waits.
    this.onWaiting(false);
    const headers = collectFields(fields);
    this.#answered.resolve({
      status,
      headers,
      readInto: (target) => content.readInto(target),
      readAll: (bytesMax) => content.readAll(bytesMax),
      chunks: () => content.chunks(),
    });
    if (framing !== Framing.None) return;
    this.#isDirty = isFollowed;
    this.#complete();
  }

  #take(bytes: Buffer, at: number, length: number): void {
    const content = this.#content!;
    if (this.#decoder !== null) this.#decode(this.#decoder, bytes, at, length);
    else if (content.remaining === -1) content.add(bytes, at, length);
    else {
      const end = Math.min(length, at + content.remaining);
      if (end < length) this.#isDirty = true;
      content.add(bytes, at, end);
      if (content.remaining === 0) this.#complete();
    }
  }

  #decode(decoder: ChunkedDecoder, bytes: Buffer, from: number, length: number): void {
    for (let at = from; !this.#isOver; at = decoder.next) {
      const status = decoder.execute(bytes, at, length);
      if (status === Chunk.NeedsMore) return;
      if (status === Chunk.Data) this.#content!.add(bytes, decoder.dataStart, decoder.dataEnd);
      else if (status === Chunk.Complete) {
        if (decoder.next < length) this.#isDirty = true;
        this.#complete();
      } else this.#fail("malformed-response", decoder.refusal!.code);
    }
  }

  #complete(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const connection = this.#connection!;
    this.#leave();
    this.#content!.complete();
    const { socket, parser } = connection;
    const isWhole = this.#isSent && !this.#isDirty && socket.writableLength === 0;
    connection.holdProcess(false);
    connection.user = null;
    if (isWhole && parser.keepAlive) this.#pool.release(connection);
    else connection.destroy();
  }

  #fail(kind: OutgoingFailure, detail = "", cause?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const connection = this.#connection;
    const isUnanswered = this.#content === null && connection?.parser.begun !== true;
    this.isStale = kind === "no-response" && isUnanswered && this.#isOnKept;
    const error = new OutgoingError(kind, detail, cause === undefined ? {} : { cause });
    this.#leave();
    this.#content?.fail(error);
    this.#answered.reject(error);
    if (connection === null) this.#pool.cancel(this);
    else {
      connection.user = null;
      connection.destroy();
    }
  }

  #leave(): void {
    this.#engine.remove(this);
    this.#connection = null;
    this.#deadlineMs = Infinity;
    this.#onDrain?.();
  }
}

function isStream(body: OutgoingRequest["body"]): body is AsyncIterable<Uint8Array> {
  return body !== undefined && Symbol.asyncIterator in body;
}

function collectFields(fields: FieldBlock): Record<string, string> {
  // Without a prototype, whose names a server could give.
  const headers = Object.create(null) as Record<string, string>;
  for (let index = 0; index < fields.count; index++) {
    const name = fields.name(index).toLowerCase();
    const value = fields.value(index);
    const before = headers[name];
    headers[name] = before === undefined ? value : `${before}, ${value}`;
  }
  return headers;
}
