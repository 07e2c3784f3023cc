// Bounds the retries of a worker so that retries do not overload a failing upstream.

/** Options of {@link RetryBudget}. */
export interface RetryBudgetOptions {
  /** Retries as a share of requests. */
  share: number;
  /** Retries per second that are always allowed. */
  perSecondMin: number;
  /** Window over which requests and retries are counted, in whole seconds. */
  windowSeconds: number;
}

/** The larger of 20 % of requests and 10 per second, over ten seconds. */
const RETRY_BUDGET_DEFAULT: Readonly<RetryBudgetOptions> = {
  share: 0.2,
  perSecondMin: 10,
  windowSeconds: 10,
};

/** Sliding counts of requests and retries with a resolution of one second. */
export class RetryBudget {
  readonly #options: Readonly<RetryBudgetOptions>;
  readonly #requests: Float64Array;
  readonly #retries: Float64Array;
  #requestsSum = 0;
  #retriesSum = 0;
  #at = 0;

  constructor(options: Readonly<RetryBudgetOptions> = RETRY_BUDGET_DEFAULT) {
    this.#options = options;
    this.#requests = new Float64Array(options.windowSeconds);
    this.#retries = new Float64Array(options.windowSeconds);
  }

  /** Counts a request. */
  addRequest(): void {
    this.#requests[this.#at] = this.#requests[this.#at]! + 1;
    this.#requestsSum++;
  }

  /** Takes one retry from the budget; false if the budget is exhausted. */
  takeRetry(): boolean {
    const { share, perSecondMin, windowSeconds } = this.#options;
    const allowed = Math.max(share * this.#requestsSum, perSecondMin * windowSeconds);
    if (this.#retriesSum + 1 > allowed) return false;
    this.#retries[this.#at] = this.#retries[this.#at]! + 1;
    this.#retriesSum++;
    return true;
  }

  /** Advances the window by one second; called once a second. */
  tick(): void {
    this.#at = (this.#at + 1) % this.#options.windowSeconds;
    this.#requestsSum -= this.#requests[this.#at]!;
    this.#retriesSum -= this.#retries[this.#at]!;
    this.#requests[this.#at] = 0;
    this.#retries[this.#at] = 0;
  }
}
