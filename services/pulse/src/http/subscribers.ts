// The open SSE and WebSocket subscribers: how many there may be, and who is dropped for taking nothing.
import { createRetryLaterError } from "@platform/kernel/errors";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { OutgoingBudget } from "@platform/kernel/sockets";
import type { Tenant } from "../topic/name.ts";

/** One open stream. */
export interface SubscriberStream {
  /** Whether something waits for the connection to take it. */
  isStalled: () => boolean;
  /** Keeps the connection alive. */
  ping: () => void;
  /** Ends it, saying why if that still gets through. */
  drop: (reason: string) => void;
}

const PING_MS = 15_000;
const SWEEP_MS = 1_000;

/** Options of `Subscribers`. */
export interface SubscribersOptions {
  subscribersMax: number;
  /** Subscribers that read nothing for this time are disconnected, in ms. */
  stallTimeoutMs: number;
  outgoing: OutgoingBudget;
  /** Called for each subscriber that was disconnected because it read nothing. */
  onDropped: (tenant: Tenant) => void;
  onError: (error: unknown) => void;
}

/** The open streams of the HTTP listener. */
export class Subscribers {
  readonly #options: SubscribersOptions;
  readonly #streams = new Map<
    SubscriberStream,
    { tenant: Tenant; stalledSinceMs: number | undefined; pingAtMs: number }
  >();
  #timer: RepeatingTimer | undefined;
  /** Subscribers that were dropped because they took nothing. */
  dropped = 0;

  constructor(options: SubscribersOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#streams.size;
  }

  /** Throws `overloaded` where no more fit. */
  checkRoom(): void {
    if (this.#streams.size < this.#options.subscribersMax) return;
    throw createRetryLaterError("overloaded", "No more subscribers fit.", 5);
  }

  /** Whether all streams together may be given more bytes; if not, `resume` is called when they may. */
  hasRoom(resume: () => void): boolean {
    if (!this.#options.outgoing.isFull) return true;
    this.#options.outgoing.whenRoom(resume);
    return false;
  }

  add(stream: SubscriberStream, tenant: Tenant): void {
    const pingAtMs = performance.now() + PING_MS;
    this.#streams.set(stream, { tenant, stalledSinceMs: undefined, pingAtMs });
    this.#timer ??= every(SWEEP_MS, () => this.#sweep(), this.#options.onError);
  }

  remove(stream: SubscriberStream): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    void this.#timer?.stop();
    this.#timer = undefined;
  }

  /** Ends all of them. */
  close(reason: string): void {
    for (const stream of this.#streams.keys()) stream.drop(reason);
    void this.#timer?.stop();
  }

  #sweep(): void {
    const now = performance.now();
    for (const [stream, state] of this.#streams) {
      if (!stream.isStalled()) {
        state.stalledSinceMs = undefined;
        if (now < state.pingAtMs) continue;
        state.pingAtMs = now + PING_MS;
        stream.ping();
      } else {
        state.stalledSinceMs ??= now;
        if (now - state.stalledSinceMs < this.#options.stallTimeoutMs) continue;
        this.dropped++;
        this.#options.onDropped(state.tenant);
        stream.drop("too slow: nothing was taken for too long");
      }
    }
  }
}
