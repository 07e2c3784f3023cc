// The answers of one connection, encoded and written in the order of the requests, as fast as the client reads them.
import type { Socket } from "node:net";
import type { Outflow } from "@platform/kernel/sockets";
import type { SocketTransport } from "../../connection/transport.ts";

/** Encodes an answer into the buffers of its frame. */
export type AnswerEncoder = () => readonly Buffer[];

/** A request whose answer has not been written. */
export interface PendingAnswer {
  /** Set when the request has been handled; "none" if the client wants no answer. */
  encode: AnswerEncoder | "none" | undefined;
  /** Called when the answer was written, or was dropped. */
  release: (() => void) | undefined;
  /** Called when the socket no longer needs the buffers of the answer; not if the connection ends before. */
  onSent: (() => void) | undefined;
  onTurn: (() => void) | undefined;
}

/** Callbacks of a queue. */
export interface AnswerQueueEvents {
  /** Answers were written, or the client has read them: the next request may start. */
  onProgress(): void;
  /** An answer could not be encoded. */
  onError(error: unknown): void;
}

/**
 * Requests in the order of arrival:
 *
 *     │ handled, head │ in progress │ handled │ …       written from the head on, as far as handled
 *
 * Answers are encoded when they are written, and not while the socket holds more than its high-water mark (64 KiB): a
 * client that does not read makes a connection hold at most one large answer.
 */
export class AnswerQueue {
  readonly #socket: Socket;
  readonly #events: AnswerQueueEvents;
  readonly #outflow: Outflow;
  readonly #queue: PendingAnswer[] = [];
  #isClosed = false;

  constructor({ socket, outflow }: SocketTransport, events: AnswerQueueEvents) {
    this.#socket = socket;
    this.#events = events;
    this.#outflow = outflow;
  }

  /** Number of unanswered requests. */
  get size(): number {
    return this.#queue.length;
  }

  /** True if bytes wait for the client to read them. */
  get isUnread(): boolean {
    return this.#socket.writableLength > 0;
  }

  /** True if the client must read before further answers are written and requests started. */
  get isHeldBack(): boolean {
    return this.#socket.writableNeedDrain;
  }

  /** Adds a request. */
  add(): PendingAnswer {
    const pending: PendingAnswer = {
      encode: undefined,
      release: undefined,
      onSent: undefined,
      onTurn: undefined,
    };
    this.#queue.push(pending);
    return pending;
  }

  /** Resolves when all earlier requests are answered and the client has read most of the answers, or when it is gone. */
  turn(pending: PendingAnswer): Promise<void> {
    if (this.#isClosed || (this.#queue[0] === pending && !this.isHeldBack)) {
      return Promise.resolve();
    }
    return new Promise((resolve) => (pending.onTurn = resolve));
  }

  /** Sets the answer of a request; it is written in turn. */
  answer(pending: PendingAnswer, encode: AnswerEncoder | "none"): void {
    if (this.#isClosed) return;
    pending.encode = encode;
    this.progress();
  }

  /** Writes available answers; the next request may start. */
  progress(): void {
    this.#flush();
    this.#events.onProgress();
  }

  /** Counts the bytes in the socket. */
  settle(): void {
    this.#outflow.settle();
  }

  /** The socket has closed: releases everything and ends all waits. */
  close(): void {
    this.#isClosed = true;
    for (const { release, onTurn } of this.#queue.splice(0)) {
      release?.();
      onTurn?.();
    }
  }

  #flush(): void {
    if (this.#isClosed) return;
    try {
      this.#writeHandled();
    } catch (error) {
      this.#events.onError(error);
      return;
    }
    if (!this.isHeldBack) this.#queue[0]?.onTurn?.();
  }

  #writeHandled(): void {
    if (this.#queue[0]?.encode === undefined || this.isHeldBack) return;
    this.#socket.cork();
    try {
      while (this.#queue[0]?.encode !== undefined && !this.isHeldBack) {
        this.#write(this.#queue.shift()!);
      }
    } finally {
      this.#socket.uncork();
    }
    this.#outflow.settle();
  }

  // All of an answer was sent: bytes of other answers still count, these no longer.
  #onWritten(error: Error | null | undefined, onSent: PendingAnswer["onSent"]): void {
    this.#outflow.settle();
    if (error === undefined || error === null) onSent?.();
  }

  #write({ encode, release, onSent }: PendingAnswer): void {
    const parts = encode === undefined || encode === "none" ? [] : encode();
    for (const [index, part] of parts.entries()) {
      if (index < parts.length - 1) this.#socket.write(part);
      else this.#socket.write(part, (error) => this.#onWritten(error, onSent));
    }
    release?.();
  }
}
