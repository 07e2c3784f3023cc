// Judges and counts the results of one route's attempts: circuits, canaries, outlier statuses, and statuses to retry.
import {
  Circuit,
  type CircuitBreakerSpec,
  type ResilienceSpec,
  type RetrySpec,
  type SharedLinkState,
} from "../shared-state/index.ts";

/** Time between two trials of a route all of whose circuits are open; an absence should not last much longer than it did. */
const TRIAL_MS = 250;

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

/** `trial`: one of {@link Resilience.startTrial}. `refused`: the target refused the connection. */
export type AttemptKind = "usual" | "trial" | "refused";

/** Resilience of one route; a route without such settings has none. */
export class Resilience {
  readonly #options: ResilienceOptions;
  readonly #breaker: CircuitBreakerSpec | undefined;
  readonly #hasCanary: boolean;
  readonly #outliers: ReadonlySet<number>;
  readonly #retryStatuses: ReadonlySet<number>;
  readonly #links: readonly number[];
  #trials = 0;
  readonly retry: RetrySpec | undefined;

  /** `links` are those of the targets, in their order. */
  constructor(spec: ResilienceSpec, links: readonly number[], options: ResilienceOptions) {
    this.#options = options;
    this.#links = links;
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

  /**
   * The index of a target for a request that no circuit lets through: while those of all targets with a weight are open,
   * one request in 250 ms finds out whether they are still failing, and its success closes the circuit. -1 for others.
   */
  startTrial(isWeighted: (index: number) => boolean): number {
    const { links, readNowMs } = this.#options;
    const weighted = this.#links.flatMap((_link, index) => (isWeighted(index) ? [index] : []));
    const isOpen = (index: number): boolean =>
      links.readCircuit(this.#links[index]!) === Circuit.Open;
    if (this.#breaker === undefined || weighted.length === 0 || !weighted.every(isOpen)) return -1;
    if (!links.startTrial(this.#links[0]!, readNowMs(), TRIAL_MS)) return -1;
    return weighted[this.#trials++ % weighted.length]!;
  }

  /** Records an attempt. */
  note(link: number, isFailure: boolean, how: AttemptKind = "usual"): void {
    if (this.#hasCanary) this.#options.links.addCanaryResult(link, isFailure);
    if (this.#breaker !== undefined) this.#judgeCircuit(this.#breaker, link, isFailure, how);
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

  #judgeCircuit(
    breaker: CircuitBreakerSpec,
    link: number,
    isFailure: boolean,
    how: AttemptKind,
  ): void {
    const { links, readNowMs } = this.#options;
    const nowMs = readNowMs();
    switch (links.readCircuit(link)) {
      case Circuit.Closed: {
        links.addResult(link, isFailure, nowMs);
        if (!isFailure) return;
        const requests = links.countRequests(link, breaker.windowSeconds, nowMs);
        const failures = links.countFailures(link, breaker.windowSeconds, nowMs);
        if (requests < breaker.requestsMin || failures / requests < breaker.errorRate) return;
        this.#open(breaker, link, Circuit.Closed, nowMs, how);
        return;
      }
      case Circuit.HalfOpen:
        if (isFailure) this.#open(breaker, link, Circuit.HalfOpen, nowMs, how);
        else if (links.passProbe(link) >= breaker.probes) this.#close(link, Circuit.HalfOpen);
        return;
      default:
        // Open: other attempts began before it opened and show nothing new.
        if (how === "trial" && !isFailure) this.#close(link, Circuit.Open);
    }
  }

  #open(
    breaker: CircuitBreakerSpec,
    link: number,
    from: number,
    nowMs: number,
    how: AttemptKind,
  ): void {
    const { links, onOpen } = this.#options;
    links.delayTrial(this.#links[0]!, nowMs);
    // A refused connection says that the target is not there now, at once and at no cost to it.
    const isRefused = how === "refused";
    const openMs = isRefused ? Math.min(breaker.openMs, TRIAL_MS) : breaker.openMs;
    // The time is set after the state: until then, the circuit is open until the past, and a probe may get through.
    if (!links.changeCircuit(link, from, Circuit.Open, nowMs + openMs)) return;
    if (isRefused) {
      onOpen();
      return;
    }
    const before = links.addOpening(link);
    if (before > 0) {
      const longerMs = Math.min(breaker.openMsMax, breaker.openMs * 2 ** Math.min(before, 20));
      links.restartProbes(link, nowMs + longerMs);
    }
    onOpen();
  }

  #close(link: number, from: number): void {
    const { links } = this.#options;
    if (links.changeCircuit(link, from, Circuit.Closed, 0)) links.resetCircuit(link);
  }
}
