// The size of a stream's receive window: as large as raises its rate, and no larger.
import { INITIAL_CREDIT_BYTES } from "./format.ts";

/** Window that a stream reaches as soon as its destination accepts bytes. */
const BYTES_USUAL = 262_144;
const BYTES_MAX = 4_194_304;
/** Shortest time over which a rate is measured. */
const MEASURE_MS_MIN = 20;
const MEASURE_ROUND_TRIPS = 4;
/** A doubled window stays if it has raised the rate by this factor. */
const GAIN_MIN = 1.25;
/** Time after a trial without gain until the next one. */
const TRIAL_AFTER_MS = 5_000;

/** State of the connection when a window is adapted. */
export interface WindowConditions {
  /** Monotonic time. */
  nowMs: number;
  /** Shortest recent round trip. */
  roundTripMs: number;
  /** False while memory for received bytes is short. */
  mayGrow: boolean;
}

/**
 * A window that is used up within a few round trips may limit the rate. It is doubled for a trial, and halved again if
 * the rate has not risen: then something else is the limit, and the window would only fill buffers on the way, behind
 * which small answers wait.
 */
export class ReceiveWindow {
  /** Current size. */
  bytes = INITIAL_CREDIT_BYTES;
  #sinceMs = 0;
  #acceptedBytes = 0;
  /** Rate before the current trial, in bytes per ms. */
  #rateBefore = 0;
  #isTrial = false;
  #trialAtMs = 0;

  /** Counts accepted bytes and returns the change of `bytes`: negative if less credit is to be granted. */
  adapt(accepted: number, conditions: WindowConditions): number {
    const { nowMs, roundTripMs, mayGrow } = conditions;
    if (this.bytes < BYTES_USUAL) return mayGrow ? this.#resize(BYTES_USUAL, nowMs) : 0;
    this.#acceptedBytes += accepted;
    const elapsedMs = nowMs - this.#sinceMs;
    if (elapsedMs < Math.max(MEASURE_MS_MIN, MEASURE_ROUND_TRIPS * roundTripMs)) return 0;
    const rate = this.#acceptedBytes / elapsedMs;
    const isLimiting = this.bytes < rate * MEASURE_ROUND_TRIPS * roundTripMs;
    return this.#resize(this.#choose(rate, isLimiting && mayGrow, nowMs), nowMs);
  }

  #choose(rate: number, mayGrow: boolean, nowMs: number): number {
    const isInVain = this.#isTrial && rate < this.#rateBefore * GAIN_MIN;
    this.#isTrial = false;
    if (isInVain) {
      this.#trialAtMs = nowMs + TRIAL_AFTER_MS;
      return this.bytes / 2;
    }
    if (!mayGrow || nowMs < this.#trialAtMs || this.bytes >= BYTES_MAX) return this.bytes;
    this.#isTrial = true;
    this.#rateBefore = rate;
    return this.bytes * 2;
  }

  #resize(bytes: number, nowMs: number): number {
    const change = bytes - this.bytes;
    this.bytes = bytes;
    this.#sinceMs = nowMs;
    this.#acceptedBytes = 0;
    return change;
  }
}
