// Judges and counts the results of one route's attempts: circuits, canaries, outlier statuses, and statuses to retry.
import {
  Circuit,
  type CircuitBreakerSpec,
  type ResilienceSpec,
  type RetrySpec,
  type SharedLinkState,
} from "../shared-state/index.ts";

/** True if a response with this status is a failed attempt on any route. */
export function isServerError(status: number): boolean {
  return status >= 500;
}

/** Options of {@link Resilience}. */
export interface ResilienceOptions {
  links: SharedLinkState;
  /** Milliseconds of the clock that all workers share. */
  readNowMs: () => number;
  /** Called when a circuit opens. */
  onOpen: () => void;
}

/** Resilience of one route; a route without such settings has none. */
export class Resilience {
  readonly #options: ResilienceOptions;
  readonly #breaker: CircuitBreakerSpec | undefined;
  readonly #hasCanary: boolean;
  readonly #outliers: ReadonlySet<number>;
  readonly #retryStatuses: ReadonlySet<number>;
  readonly retry: RetrySpec | undefined;

  constructor(spec: ResilienceSpec, options: ResilienceOptions) {
    this.#options = options;
    this.#breaker = spec.breaker;
    this.#hasCanary = spec.canary !== undefined;
    this.#outliers = new Set(spec.outlierStatuses);
    this.#retryStatuses = new Set(spec.retry?.statuses);
    this.retry = spec.retry;
  }

  /** True if the circuit of the link lets a request through. */
  admits(link: number): boolean {
    const breaker = this.#breaker;
    if (breaker === undefined) return true;
    const { links } = this.#options;
    const state = links.readCircuit(link);
    if (state === Circuit.Closed) return true;
    const nowMs = this.#options.readNowMs();
    const isOver = nowMs >= links.readUntilMs(link);
    if (state === Circuit.Open) {
      if (!isOver) return false;
      links.changeCircuit(link, Circuit.Open, Circuit.HalfOpen, nowMs + breaker.openMs);
    } else if (isOver) {
      links.restartProbes(link, nowMs + breaker.openMs);
    }
    return links.startProbe(link) < breaker.probes;
  }

  /** Seconds until the circuit of one of the links may let a request through, at least 1. */
  readRetryAfterSeconds(linkSlots: readonly number[]): number {
    const { links, readNowMs } = this.#options;
    const untilMs = Math.min(...linkSlots.map((link) => links.readUntilMs(link)));
    return Math.max(1, Math.ceil((untilMs - readNowMs()) / 1000));
  }

  /** Records an attempt. */
  note(link: number, isFailure: boolean): void {
    if (this.#hasCanary) this.#options.links.addCanaryResult(link, isFailure);
    if (this.#breaker !== undefined) this.#judgeCircuit(this.#breaker, link, isFailure);
  }

  /** True if a response with this status is a failed attempt. */
  isFailure(status: number): boolean {
    return isServerError(status) || this.#outliers.has(status);
  }

  /** True if a response with this status counts against the health of its target. */
  isOutlier(status: number): boolean {
    return this.#outliers.has(status);
  }

  /** True if a response with this status is retried. */
  isRetried(status: number): boolean {
    return this.#retryStatuses.has(status);
  }

  #judgeCircuit(breaker: CircuitBreakerSpec, link: number, isFailure: boolean): void {
    const { links, readNowMs } = this.#options;
    const nowMs = readNowMs();
    switch (links.readCircuit(link)) {
      case Circuit.Closed: {
        links.addResult(link, isFailure, nowMs);
        if (!isFailure) return;
        const requests = links.countRequests(link, breaker.windowSeconds, nowMs);
        const failures = links.countFailures(link, breaker.windowSeconds, nowMs);
        if (requests < breaker.requestsMin || failures / requests < breaker.errorRate) return;
        this.#open(breaker, link, Circuit.Closed, nowMs);
        return;
      }
      case Circuit.HalfOpen:
        if (isFailure) this.#open(breaker, link, Circuit.HalfOpen, nowMs);
        else if (links.passProbe(link) >= breaker.probes) this.#close(link);
        return;
      default:
      // Open: the attempt began before it opened and shows nothing new.
    }
  }

  #open(breaker: CircuitBreakerSpec, link: number, from: number, nowMs: number): void {
    const { links, onOpen } = this.#options;
    // The time is set after the state: until then, the circuit is open until the past, and a probe may get through.
    if (!links.changeCircuit(link, from, Circuit.Open, nowMs + breaker.openMs)) return;
    const before = links.addOpening(link);
    if (before > 0) {
      const openMs = Math.min(breaker.openMsMax, breaker.openMs * 2 ** Math.min(before, 20));
      links.restartProbes(link, nowMs + openMs);
    }
    onOpen();
  }

  #close(link: number): void {
    const { links } = this.#options;
    if (links.changeCircuit(link, Circuit.HalfOpen, Circuit.Closed, 0)) links.resetCircuit(link);
  }
}
