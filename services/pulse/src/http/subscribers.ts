// The open SSE and WebSocket subscribers: how many there may be, and who is dropped for taking nothing.
import { createRetryLaterError } from "@platform/kernel/errors";
import type { OutgoingBudget } from "@platform/kernel/sockets";
import type { Tenant } from "../topic/name.ts";

/** One open stream. */
export type SubscriberStream = {
  /** Whether something waits for the connection to take it. */
  isStalled: () => boolean;
  /** Keeps the connection alive. */
  ping: () => void;
  /** Ends it, saying why if that still gets through. */
  drop: (reason: string) => void;
};

const pingMs = 15_000;
const sweepMs = 1_000;

/** All streams of the HTTP face. */
export class Subscribers {
  readonly #max: number;
  readonly #stallMs: number;
  readonly #outgoing: OutgoingBudget;
  readonly #onDropped: (tenant: Tenant) => void;
  readonly #streams = new Map<
    SubscriberStream,
    { tenant: Tenant; stalledSinceMs: number | undefined; pingAtMs: number }
  >();
  #timer: NodeJS.Timeout | undefined;
  /** Subscribers that were dropped because they took nothing. */
  dropped = 0;

  /** `onDropped` is called for each subscriber that was dropped because it took nothing. */
  constructor(
    max: number,
    stallMs: number,
    outgoing: OutgoingBudget,
    onDropped: (tenant: Tenant) => void,
  ) {
    this.#max = max;
    this.#outgoing = outgoing;
    this.#stallMs = stallMs;
    this.#onDropped = onDropped;
  }

  get count(): number {
    return this.#streams.size;
  }

  /** Throws `overloaded` where no more fit. */
  checkRoom(): void {
    if (this.#streams.size < this.#max) return;
    throw createRetryLaterError("overloaded", "No more subscribers fit.", 5);
  }

  /** Whether all streams together may be given more bytes; if not, `resume` is called when they may. */
  hasRoom(resume: () => void): boolean {
    if (!this.#outgoing.isFull) return true;
    this.#outgoing.whenRoom(resume);
    return false;
  }

  add(stream: SubscriberStream, tenant: Tenant): void {
    const pingAtMs = performance.now() + pingMs;
    this.#streams.set(stream, { tenant, stalledSinceMs: undefined, pingAtMs });
    this.#timer ??= setInterval(() => this.#sweep(), sweepMs).unref();
  }

  remove(stream: SubscriberStream): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Ends all of them. */
  close(reason: string): void {
    for (const stream of this.#streams.keys()) stream.drop(reason);
    clearInterval(this.#timer);
  }

  #sweep(): void {
    const now = performance.now();
    for (const [stream, state] of this.#streams) {
      if (!stream.isStalled()) {
        state.stalledSinceMs = undefined;
        if (now < state.pingAtMs) continue;
        state.pingAtMs = now + pingMs;
        stream.ping();
      } else {
        state.stalledSinceMs ??= now;
        if (now - state.stalledSinceMs < this.#stallMs) continue;
        this.dropped++;
        this.#onDropped(state.tenant);
        stream.drop("too slow: nothing was taken for too long");
      }
    }
  }
}
