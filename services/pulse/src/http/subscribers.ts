// The open SSE and WebSocket subscribers: their limit, keep-alives, and disconnection of slow ones.
import { createRetryLaterError } from "@platform/kernel/errors";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { Tenant } from "../topic/name.ts";

/** One open stream. */
export interface SubscriberStream {
  /** True if data waits for the connection. */
  isStalled: () => boolean;
  /** Sends a keep-alive. */
  ping: () => void;
  /** Ends it, with the reason if that can still be sent. */
  drop: (reason: string) => void;
}

const PING_MS = 15_000;
const SWEEP_MS = 1_000;

/** Options of `Subscribers`. */
export interface SubscribersOptions {
  subscribersMax: number;
  /** Subscribers that read nothing for this time are disconnected, in ms. */
  stallTimeoutMs: number;
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
  /** Number of subscribers disconnected because they read nothing. */
  dropped = 0;

  constructor(options: SubscribersOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#streams.size;
  }

  /** Throws `overloaded` at the limit. */
  checkRoom(): void {
    if (this.#streams.size < this.#options.subscribersMax) return;
    throw createRetryLaterError("overloaded", "The limit of subscribers is reached.", 5);
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

  /** Ends all streams. */
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
