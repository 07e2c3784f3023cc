// Times in databases that a clock ahead has planned: they are found when the calendar is set back.

/** Notices that the calendar was set back. */
export class SetBackWatch {
  #latestMs = Number.POSITIVE_INFINITY;

  /** Notes what the calendar shows. */
  note(nowMs: number): void {
    this.#latestMs = Math.max(this.#latestMs, nowMs);
  }

  /**
   * Calls `work` if the calendar is behind what it has shown, and at the first time: it may have been set back while the
   * process did not run. If `work` fails, it is called again the next time.
   */
  async follow(nowMs: number, work: () => Promise<void>): Promise<void> {
    if (nowMs < this.#latestMs) await work();
    this.#latestMs = nowMs;
  }
}
