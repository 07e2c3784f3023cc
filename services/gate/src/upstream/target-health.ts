// Passive health: what exchanges tell about a target decides whether it gets more of them.
import type { SharedTargetState } from "../shared-state/index.ts";

/** The numbers of passive health. */
export interface TargetHealthOptions {
  /** Failures in a row after which a target is ejected; a refused connection ejects at once. */
  failuresMax: number;
  /** First ejection; each further one without a success in between is twice as long. */
  ejectMs: number;
  /** Longest ejection. */
  ejectMsMax: number;
  /** How long a target that came back takes to get its whole share again. */
  slowStartMs: number;
}

/** The numbers of a gateway that sets none. */
export const TARGET_HEALTH_DEFAULT: Readonly<TargetHealthOptions> = {
  failuresMax: 3,
  ejectMs: 1_000,
  ejectMsMax: 60_000,
  slowStartMs: 10_000,
};

// The share of traffic that a target gets in the first moment after it came back.
const SLOW_START_SHARE = 0.1;

/** Judges targets by their slots; all workers of a process share what is known. */
export class TargetHealth {
  readonly #targets: SharedTargetState;
  readonly #options: Readonly<TargetHealthOptions>;
  readonly #readNowMs: () => number;

  /** `readNowMs` gives milliseconds since `SharedBuffers.startedMs`. */
  constructor(
    targets: SharedTargetState,
    readNowMs: () => number,
    options: Readonly<TargetHealthOptions> = TARGET_HEALTH_DEFAULT,
  ) {
    this.#targets = targets;
    this.#readNowMs = readNowMs;
    this.#options = options;
  }

  /** Whether the target is out of traffic now. The first to see that an ejection is over ends it. */
  isEjected(slot: number): boolean {
    const untilMs = this.#targets.readEjectedUntilMs(slot);
    if (untilMs === 0) return false;
    const nowMs = this.#readNowMs();
    if (nowMs < untilMs) return true;
    this.#targets.readmit(slot, nowMs);
    return false;
  }

  /** The share of its traffic that a target in traffic should get now: 1, or less while it starts slowly. */
  readShare(slot: number): number {
    const recoveredAtMs = this.#targets.readRecoveredAtMs(slot);
    if (recoveredAtMs === 0) return 1;
    const passed = (this.#readNowMs() - recoveredAtMs) / this.#options.slowStartMs;
    return passed >= 1 ? 1 : Math.max(SLOW_START_SHARE, passed);
  }

  /** Learns that an attempt succeeded. */
  noteSuccess(slot: number): void {
    if (this.#targets.readFailures(slot) === 0 && this.#targets.readEjections(slot) === 0) return;
    // While it is out, only attempts that began before can succeed: they say nothing about now.
    if (this.#targets.readEjectedUntilMs(slot) === 0) this.#targets.forgive(slot);
  }

  /**
   * Learns that an attempt failed; `refused`: the connection was refused. True where this ejects the target: after
   * enough failures in a row, at once if it was refused or if it failed its first attempt after an ejection.
   */
  noteFailure(slot: number, refused: boolean): boolean {
    const failures = this.#targets.addFailure(slot);
    const ejections = this.#targets.readEjections(slot);
    if (!refused && ejections === 0 && failures < this.#options.failuresMax) return false;
    const lengthMs = Math.min(
      this.#options.ejectMsMax,
      this.#options.ejectMs * 2 ** Math.min(ejections, 20),
    );
    return this.#targets.eject(slot, this.#readNowMs() + lengthMs);
  }
}
