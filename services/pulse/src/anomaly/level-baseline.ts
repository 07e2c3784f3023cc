// The usual level of a figure, such as messages per second, and whether it has left it.
import type { Severity } from "./anomaly-log.ts";

/** Samples before anything is said. */
const LEARNED_SAMPLES = 180;
/** Samples that must be unusual, or usual again, in a row. */
const RUN = 3;
/** Weights of a sample: one counts half in the mean after ten minutes, in the variance after an hour. */
const MEAN_WEIGHT = 1 - 0.5 ** (1 / 60);
const VARIANCE_WEIGHT = 1 - 0.5 ** (1 / 360);
const DEVIATIONS = 4;
const DEVIATIONS_MEDIUM = 6;
const DEVIATIONS_HIGH = 10;
/** Time after which an unusual level is the usual one. */
const ADOPTED_MS = 3_600_000;

/** An unusual level. */
export interface Departure {
  readonly direction: "up" | "down";
  /** Epoch ms. */
  readonly since: number;
  readonly observed: number;
  readonly expected: number;
  readonly severity: Severity;
}

/** The numbers that are stored. */
export type StoredLevel = readonly [samples: number, mean: number, variance: number];

/**
 * Exponentially weighted mean and variance. The mean follows a rhythm of a day closely, as what it is behind would widen the
 * variance until even silence is usual.
 */
export class LevelBaseline {
  #samples: number;
  #mean: number;
  #variance: number;
  readonly #differenceMin: (mean: number) => number;
  #run = 0;
  #calm = 0;
  #direction: Departure["direction"] = "up";
  #since = 0;
  #departure: Departure | undefined;

  /** `differenceMin`: difference from a mean below which no level is unusual. */
  constructor(differenceMin: (mean: number) => number, stored: StoredLevel = [0, 0, 0]) {
    [this.#samples, this.#mean, this.#variance] = stored;
    this.#differenceMin = differenceMin;
  }

  get mean(): number {
    return this.#mean;
  }

  get deviation(): number {
    return Math.sqrt(this.#variance);
  }

  get isLearning(): boolean {
    return this.#samples < LEARNED_SAMPLES;
  }

  store(): StoredLevel {
    return [this.#samples, this.#mean, this.#variance];
  }

  /** Takes a sample. Returns the departure that lasts, if any. */
  observe(value: number, nowMs: number): Departure | undefined {
    const difference = value - this.#mean;
    const { deviation } = this;
    const isUsual =
      this.isLearning ||
      Math.abs(difference) <= DEVIATIONS * deviation ||
      Math.abs(difference) <= this.#differenceMin(this.#mean);
    if (isUsual) {
      this.#learn(value);
      this.#run = 0;
      this.#calm++;
      if (this.#calm >= RUN) this.#departure = undefined;
      return this.#departure;
    }
    this.#calm = 0;
    const direction = difference > 0 ? "up" : "down";
    if (this.#run === 0 || direction !== this.#direction) {
      this.#direction = direction;
      this.#since = nowMs;
      this.#run = 0;
    }
    this.#run++;
    if (nowMs - this.#since >= ADOPTED_MS) this.#adopt(value);
    else if (this.#run >= RUN) this.#depart(value, Math.abs(difference) / deviation);
    return this.#departure;
  }

  #depart(observed: number, deviations: number): void {
    const severity =
      deviations > DEVIATIONS_HIGH ? "high" : deviations > DEVIATIONS_MEDIUM ? "medium" : "low";
    const { direction, since } = { direction: this.#direction, since: this.#since };
    this.#departure = { direction, since, observed, expected: this.#mean, severity };
  }

  #adopt(value: number): void {
    this.#samples = 0;
    this.#run = 0;
    this.#departure = undefined;
    this.#learn(value);
  }

  // The first samples count alike.
  #learn(value: number): void {
    if (this.#samples === 0) {
      this.#mean = value;
      this.#variance = 0;
    }
    this.#samples++;
    const share = 1 / this.#samples;
    const difference = value - this.#mean;
    this.#mean += Math.max(MEAN_WEIGHT, share) * difference;
    const weight = Math.max(VARIANCE_WEIGHT, share);
    this.#variance = (1 - weight) * (this.#variance + weight * difference * difference);
  }
}
