// Bounds the retries of a worker so that retries do not overload a failing upstream.

/** Retries as a share of requests. */
const SHARE = 0.2;
/** Retries per second that are always allowed. */
const PER_SECOND_MIN = 10;
/** Window over which requests and retries are counted. */
const WINDOW_SECONDS = 10;

/** Sliding counts of requests and retries with a resolution of one second. */
export class RetryBudget {
  readonly #requests = new Float64Array(WINDOW_SECONDS);
  readonly #retries = new Float64Array(WINDOW_SECONDS);
  #requestsSum = 0;
  #retriesSum = 0;
  #at = 0;

  /** Counts a request. */
  addRequest(): void {
    this.#requests[this.#at] = this.#requests[this.#at]! + 1;
    this.#requestsSum++;
  }

  /** True if {@link takeRetry} would succeed. */
  get hasRetry(): boolean {
    const allowed = Math.max(SHARE * this.#requestsSum, PER_SECOND_MIN * WINDOW_SECONDS);
    return this.#retriesSum + 1 <= allowed;
  }

  /** Takes one retry from the budget; false if the budget is exhausted. */
  takeRetry(): boolean {
    if (!this.hasRetry) return false;
    this.#retries[this.#at] = this.#retries[this.#at]! + 1;
    this.#retriesSum++;
    return true;
  }

  /** Advances the window by one second; called once a second. */
  tick(): void {
    this.#at = (this.#at + 1) % WINDOW_SECONDS;
    this.#requestsSum -= this.#requests[this.#at]!;
    this.#retriesSum -= this.#retries[this.#at]!;
    this.#requests[this.#at] = 0;
    this.#retries[this.#at] = 0;
  }
}
