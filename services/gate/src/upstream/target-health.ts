// Passive health checks: the outcome of requests decides whether a target receives more of them.
import type { SharedTargetState } from "../shared-state/index.ts";

/** Consecutive failures that eject a target; a refused connection ejects immediately. */
const FAILURES_MAX = 3;
/** Length of the first ejection; doubles with each further one until a request succeeds. */
const EJECT_MS = 1_000;
/** Maximum length of an ejection. */
const EJECT_MS_MAX = 60_000;
/** Time until a readmitted target receives its full share again. */
const SLOW_START_MS = 10_000;
/** Share of traffic of a target right after it is readmitted. */
const SLOW_START_SHARE = 0.1;

/** Tracks the health of targets by slot; all workers of a process share it. */
export class TargetHealth {
  readonly #targets: SharedTargetState;
  readonly #readNowMs: () => number;

  /** `readNowMs` returns milliseconds since `SharedBuffers.startedMs`. */
  constructor(targets: SharedTargetState, readNowMs: () => number) {
    this.#targets = targets;
    this.#readNowMs = readNowMs;
  }

  /** True if the target is ejected now or fails its active health checks. Ends an ejection that has expired. */
  isEjected(slot: number): boolean {
    if (this.#targets.isDown(slot)) return true;
    const untilMs = this.#targets.readEjectedUntilMs(slot);
    if (untilMs === 0) return false;
    const nowMs = this.#readNowMs();
    if (nowMs < untilMs) return true;
    this.#targets.readmit(slot, nowMs);
    return false;
  }

  /** The share of its normal traffic that the target should receive now: 1, or less during slow start. */
  readShare(slot: number): number {
    const recoveredAtMs = this.#targets.readRecoveredAtMs(slot);
    if (recoveredAtMs === 0) return 1;
    const passed = (this.#readNowMs() - recoveredAtMs) / SLOW_START_MS;
    return passed >= 1 ? 1 : Math.max(SLOW_START_SHARE, passed);
  }

  /** Records a successful attempt. */
  noteSuccess(slot: number): void {
    if (this.#targets.readFailures(slot) === 0 && this.#targets.readEjections(slot) === 0) return;
    // During an ejection only attempts that started before it can succeed: they do not show the current state.
    if (this.#targets.readEjectedUntilMs(slot) === 0) this.#targets.resetFailures(slot);
  }

  /**
   * Records a failed attempt; `refused` means that the connection was refused. Returns true if this ejects the target:
   * after enough consecutive failures, or immediately if refused or if it is the first attempt after an ejection.
   */
  noteFailure(slot: number, refused: boolean): boolean {
    const failures = this.#targets.addFailure(slot);
    const ejections = this.#targets.readEjections(slot);
    if (!refused && ejections === 0 && failures < FAILURES_MAX) return false;
    const lengthMs = Math.min(EJECT_MS_MAX, EJECT_MS * 2 ** Math.min(ejections, 20));
    return this.#targets.eject(slot, this.#readNowMs() + lengthMs);
  }
}
