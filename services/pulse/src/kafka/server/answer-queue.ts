// The answers of one connection: encoded and written in the order of the requests, as fast as the client reads them.
import type { Socket } from "node:net";
import {
  Outflow,
  type OutgoingBounds,
  type OutgoingBudget,
  type OutgoingFault,
} from "@platform/kernel/sockets";

/** Encodes an answer into the buffers of its frame. */
export type AnswerEncoder = () => readonly Buffer[];

/** A request whose answer has not been written. */
export interface PendingAnswer {
  /** Set when the request has been handled; "none" if the client wants no answer. */
  encode: AnswerEncoder | "none" | undefined;
  /** Called when the answer has been written, or never will be. */
  release: (() => void) | undefined;
  onTurn: (() => void) | undefined;
}

/** Callbacks of a queue. */
export interface AnswerQueueEvents {
  /** Answers have been written, or the client has read what was: the next request may be started. */
  onProgress(): void;
  /** The client reads too slowly: the connection must be destroyed. */
  onFault(fault: OutgoingFault): void;
  /** An answer could not be encoded. */
  onError(error: unknown): void;
}

/**
 * Requests in the order of arrival:
 *
 *     │ handled, head │ in progress │ handled │ …       written from the head on, as far as handled
 *
 * Answers are encoded when they are written, and none is while the socket holds more than its high-water mark (64 KiB): a
 * client that does not read makes a connection hold one large answer at most.
 */
export class AnswerQueue {
  readonly #socket: Socket;
  readonly #events: AnswerQueueEvents;
  readonly #outflow: Outflow;
  readonly #queue: PendingAnswer[] = [];
  readonly #onWritten = (): void => this.#outflow.settle();
  #isClosed = false;

  constructor(
    socket: Socket,
    budget: OutgoingBudget,
    bounds: OutgoingBounds,
    events: AnswerQueueEvents,
  ) {
    this.#socket = socket;
    this.#events = events;
    this.#outflow = new Outflow(socket, budget, bounds, (fault) => events.onFault(fault));
    socket.on("drain", () => {
      this.flush();
      events.onProgress();
    });
  }

  /** Requests that have not been answered. */
  get size(): number {
    return this.#queue.length;
  }

  /** Whether bytes wait for the client to read them. */
  get isUnread(): boolean {
    return this.#socket.writableLength > 0;
  }

  /** Whether the client has so much to read that nothing further is written or started. */
  get isHeldBack(): boolean {
    return this.#socket.writableNeedDrain;
  }

  /** Takes a request. */
  add(): PendingAnswer {
    const pending: PendingAnswer = { encode: undefined, release: undefined, onTurn: undefined };
    this.#queue.push(pending);
    return pending;
  }

  /** Resolves when all earlier requests have been answered and the client has read most of that; or when it has gone. */
  turn(pending: PendingAnswer): Promise<void> {
    if (this.#isClosed || (this.#queue[0] === pending && !this.isHeldBack)) {
      return Promise.resolve();
    }
    return new Promise((resolve) => (pending.onTurn = resolve));
  }

  /** The request has been handled; its answer is written when it is its turn. */
  answer(pending: PendingAnswer, encode: AnswerEncoder | "none"): void {
    if (this.#isClosed) return;
    pending.encode = encode;
    this.flush();
    this.#events.onProgress();
  }

  /** Writes what can be written. */
  flush(): void {
    if (this.#isClosed) return;
    try {
      this.#writeHandled();
    } catch (error) {
      this.#events.onError(error);
      return;
    }
    if (!this.isHeldBack) this.#queue[0]?.onTurn?.();
  }

  /** Counts what the socket holds. */
  settle(): void {
    this.#outflow.settle();
  }

  /** The socket has closed: nothing is held, and nobody waits for a turn. */
  close(): void {
    this.#isClosed = true;
    this.#outflow.close();
    for (const { release, onTurn } of this.#queue.splice(0)) {
      release?.();
      onTurn?.();
    }
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

  #write({ encode, release }: PendingAnswer): void {
    const parts = encode === undefined || encode === "none" ? [] : encode();
    for (const [index, part] of parts.entries()) {
      if (index < parts.length - 1) this.#socket.write(part);
      // Called when all of it has gone out: what is left of other answers counts, this one no longer.
      else this.#socket.write(part, this.#onWritten);
    }
    release?.();
  }
}
