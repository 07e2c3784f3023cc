// A kind of background work that runs in rounds: one at a time, cancelled between its steps, with the outcome of the last.
import type { Clock } from "@platform/kernel/time";

/** The end of a round. */
export interface EndedRound<Report> {
  /** In ms since 1970, as `endedMs`. */
  readonly startedMs: number;
  readonly endedMs: number;
  readonly outcome: "completed" | "cancelled" | "failed";
  /** Undefined if it failed, or was cancelled before it had a report. */
  readonly report?: Report;
  /** The error of a failed round. */
  readonly reason?: string;
}

/** The state of a kind of work. */
export interface RoundState<Report> {
  readonly running?: { readonly startedMs: number; readonly isCancelled: boolean };
  /** Since the start of the service. */
  readonly last?: EndedRound<Report>;
}

const REASON_CHARS_MAX = 500;

/** Runs rounds. The work stops early, and still returns its report, once its signal is aborted. */
export class Round<Report> {
  readonly #work: (signal: AbortSignal) => Promise<Report>;
  readonly #clock: Clock;
  #running: { promise: Promise<Report>; startedMs: number; stop: AbortController } | undefined;
  #last: EndedRound<Report> | undefined;
  #isStopped = false;

  constructor(work: (signal: AbortSignal) => Promise<Report>, clock: Clock) {
    this.#work = work;
    this.#clock = clock;
  }

  get state(): RoundState<Report> {
    const { startedMs, stop } = this.#running ?? {};
    return {
      ...(startedMs === undefined
        ? {}
        : { running: { startedMs, isCancelled: stop?.signal.aborted === true } }),
      ...(this.#last === undefined ? {} : { last: this.#last }),
    };
  }

  /** Runs a round; joins a running one. */
  run(): Promise<Report> {
    if (this.#running !== undefined) return this.#running.promise;
    const stop = new AbortController();
    if (this.#isStopped) stop.abort();
    const startedMs = this.#clock.now();
    const promise = this.#run(startedMs, stop.signal);
    this.#running = { promise, startedMs, stop };
    return promise;
  }

  /** Asks the running round to end; false if there is none. */
  cancel(): boolean {
    this.#running?.stop.abort();
    return this.#running !== undefined;
  }

  /** Cancels the running round and waits for its end. Later rounds end at once. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.cancel();
    await this.#running?.promise.catch(() => undefined);
  }

  async #run(startedMs: number, signal: AbortSignal): Promise<Report> {
    try {
      // The round is noted as running before its work begins.
      await Promise.resolve();
      const report = await this.#work(signal);
      this.#end(startedMs, { outcome: signal.aborted ? "cancelled" : "completed", report });
      return report;
    } catch (error) {
      const reason = (error instanceof Error ? error.message : String(error)).slice(
        0,
        REASON_CHARS_MAX,
      );
      this.#end(
        startedMs,
        signal.aborted ? { outcome: "cancelled" } : { outcome: "failed", reason },
      );
      throw error;
    }
  }

  #end(startedMs: number, ended: Omit<EndedRound<Report>, "startedMs" | "endedMs">): void {
    this.#running = undefined;
    this.#last = { startedMs, endedMs: this.#clock.now(), ...ended };
  }
}
