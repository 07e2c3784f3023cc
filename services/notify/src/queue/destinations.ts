// Pace of destinations: concurrency, rate, and pauses after connection failures.
import type { Clock } from "@platform/kernel/time";

/** Limits of a destination. */
export interface DestinationOptions {
  /** Maximum number of concurrent attempts. */
  concurrencyMax: number;
  /** Maximum number of attempts per second; 0 for no limit. */
  ratePerSecond: number;
  clock: Clock;
}

interface Destination {
  inFlight: number;
  failures: number;
  pausedUntilMs: number;
  nextAtMs: number;
}

const PAUSE_MS = 1_000;
const PAUSE_MS_MAX = 60_000;
const DESTINATIONS_MAX = 10_000;

/** Destinations by name. Those without attempts and failures take no memory. */
export class Destinations {
  readonly #options: DestinationOptions;
  readonly #destinations = new Map<string, Destination>();

  constructor(options: DestinationOptions) {
    this.#options = options;
  }

  /** True if an attempt may start now. After a failure one attempt probes the destination. */
  isOpen(name: string): boolean {
    const found = this.#destinations.get(name);
    if (found === undefined) return true;
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs < found.pausedUntilMs || nowMs < found.nextAtMs) return false;
    return found.inFlight < (found.failures > 0 ? 1 : this.#options.concurrencyMax);
  }

  /** True if the destination is paused. */
  isPaused(name: string): boolean {
    const found = this.#destinations.get(name);
    return found !== undefined && this.#options.clock.monotonicMs() < found.pausedUntilMs;
  }

  /** Milliseconds until the next destination opens by time; undefined if there is none. */
  nextOpeningMs(): number | undefined {
    const nowMs = this.#options.clock.monotonicMs();
    let next: number | undefined;
    for (const { pausedUntilMs, nextAtMs } of this.#destinations.values()) {
      const waitMs = Math.max(pausedUntilMs, nextAtMs) - nowMs;
      if (waitMs > 0 && (next === undefined || waitMs < next)) next = waitMs;
    }
    return next;
  }

  start(name: string): void {
    const found = this.#destinations.get(name) ?? this.#add(name);
    const { ratePerSecond, clock } = this.#options;
    found.inFlight += 1;
    if (ratePerSecond > 0) {
      found.nextAtMs = Math.max(found.nextAtMs, clock.monotonicMs()) + 1000 / ratePerSecond;
    }
  }

  /** Ends an attempt. `isFailure` is true if the destination was unreachable or overloaded. */
  end(name: string, isFailure: boolean): void {
    const found = this.#destinations.get(name);
    if (found === undefined) return;
    const nowMs = this.#options.clock.monotonicMs();
    found.inFlight -= 1;
    // Failures of attempts that started before the pause count once.
    if (isFailure && nowMs >= found.pausedUntilMs) {
      found.failures += 1;
      const pauseMs = Math.min(PAUSE_MS * 2 ** (found.failures - 1), PAUSE_MS_MAX);
      found.pausedUntilMs = nowMs + pauseMs;
    }
    if (!isFailure) found.failures = 0;
    const isIdle = found.inFlight === 0 && found.failures === 0 && nowMs >= found.nextAtMs;
    if (isIdle) this.#destinations.delete(name);
  }

  #add(name: string): Destination {
    if (this.#destinations.size >= DESTINATIONS_MAX) this.#evict();
    const added = { inFlight: 0, failures: 0, pausedUntilMs: 0, nextAtMs: 0 };
    this.#destinations.set(name, added);
    return added;
  }

  #evict(): void {
    for (const [name, { inFlight }] of this.#destinations) {
      if (inFlight > 0) continue;
      this.#destinations.delete(name);
      return;
    }
  }
}
