// Five minutes of a client's tunnels, second by second: requests, failures, latency.
import type { RequestEvents } from "../frame/messages.ts";

/** Seconds that are kept. */
export const TRACE_SECONDS = 300;
const LATENCIES_MAX = 256;

/** Requests of one tunnel as the page draws them. */
export interface TunnelTrace {
  /** The last second, counted from any moment. */
  readonly second: number;
  /** Requests of each second, the last one first. */
  readonly requests: readonly number[];
  /** Requests of each second that failed with 5xx or without a response. */
  readonly failures: readonly number[];
  /** Median latency of the last requests in milliseconds, null without one. */
  readonly p50_ms: number | null;
}

/** Counts of one tunnel. Slots are those of a ring, cleared as time passes over them. */
export class Activity {
  readonly #requests = new Uint32Array(TRACE_SECONDS);
  readonly #failures = new Uint32Array(TRACE_SECONDS);
  readonly #latencies: number[] = [];
  #latencyAt = 0;
  #second: number;

  /** `second`: the current one, counted from any moment. */
  constructor(second: number) {
    this.#second = second;
  }

  /** Moves on to a later second. */
  advance(second: number): void {
    const passed = Math.min(second - this.#second, TRACE_SECONDS);
    for (let step = 1; step <= passed; step++) {
      const slot = (this.#second + step) % TRACE_SECONDS;
      this.#requests[slot] = 0;
      this.#failures[slot] = 0;
    }
    if (passed > 0) this.#second = second;
  }

  /** Counts a finished request in the current second. */
  count(status: number, latencyMs: number): void {
    const slot = this.#second % TRACE_SECONDS;
    this.#requests[slot]! += 1;
    if (status === 0 || status >= 500) this.#failures[slot]! += 1;
    this.#latencies[this.#latencyAt] = latencyMs;
    this.#latencyAt = (this.#latencyAt + 1) % LATENCIES_MAX;
  }

  /** Counts requests of which nothing else is known. */
  countUnseen(requests: number): void {
    this.#requests[this.#second % TRACE_SECONDS]! += requests;
  }

  /** The last `seconds` seconds. */
  trace(seconds: number): TunnelTrace {
    const requests: number[] = [];
    const failures: number[] = [];
    for (let back = 0; back < seconds; back++) {
      const slot = (this.#second - back + TRACE_SECONDS) % TRACE_SECONDS;
      requests.push(this.#requests[slot]!);
      failures.push(this.#failures[slot]!);
    }
    const sorted = this.#latencies.toSorted((one, other) => one - other);
    const middle = sorted[Math.floor((sorted.length - 1) / 2)];
    const p50Ms = middle === undefined ? null : Math.round(middle);
    return { second: this.#second, requests, failures, p50_ms: p50Ms };
  }
}

/**
 * Counts finished requests, `of` giving the counts of a tunnel. The relay leaves out the entries of requests when there are
 * too many: they are counted in the shares of those that it sent.
 */
export function countRequests(
  { requests, dropped }: RequestEvents,
  of: (tunnel: number) => Activity | undefined,
): void {
  const seen = new Map<Activity, number>();
  for (const { tunnel, status, latency_ms: latencyMs } of requests) {
    const activity = of(tunnel);
    if (activity === undefined) continue;
    activity.count(status, latencyMs);
    seen.set(activity, (seen.get(activity) ?? 0) + 1);
  }
  if (dropped === 0) return;
  for (const [activity, count] of seen) {
    activity.countUnseen(Math.round((dropped * count) / requests.length));
  }
}
