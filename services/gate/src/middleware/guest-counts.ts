// Figures of the calls of one guest on one worker, collected until they are reported.
import type { GuestErrorCode } from "@platform/wasm/http";
import {
  GUEST_FUEL_BUCKETS,
  GUEST_OUTCOMES,
  GUEST_SECONDS_BOUNDS,
  type GuestFigures,
  type GuestOutcome,
} from "../shared-state/index.ts";

/** Counts of one name. */
export class GuestCounts {
  readonly name: string;
  #outcomes = zeros(GUEST_OUTCOMES.length);
  #secondsSum = 0;
  #seconds = zeros(GUEST_SECONDS_BOUNDS.length + 1);
  #fuel = zeros(GUEST_FUEL_BUCKETS);
  #ignoredFields = 0;
  #reportedInstances = 0;
  #calls = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** Adds a call. */
  add(outcome: GuestOutcome, ms: number, fuel: number): void {
    this.#calls++;
    const seconds = ms / 1_000;
    this.#outcomes[GUEST_OUTCOMES.indexOf(outcome)]!++;
    this.#secondsSum += seconds;
    let bound = 0;
    while (bound < GUEST_SECONDS_BOUNDS.length && seconds > GUEST_SECONDS_BOUNDS[bound]!) bound++;
    this.#seconds[bound]!++;
    this.#fuel[32 - Math.clz32(fuel)]!++;
  }

  /** Adds the fields that a request tried to change in vain. */
  addIgnoredFields(count: number): void {
    this.#ignoredFields += count;
  }

  /** Returns what has been added since the last call; undefined if nothing has changed. */
  take(instances: number): GuestFigures | undefined {
    if (this.#calls === 0 && instances === this.#reportedInstances) return undefined;
    const figures = {
      name: this.name,
      outcomes: this.#outcomes,
      secondsSum: this.#secondsSum,
      seconds: this.#seconds,
      fuel: this.#fuel,
      ignoredFields: this.#ignoredFields,
      instances,
    };
    this.#calls = 0;
    this.#ignoredFields = 0;
    this.#outcomes = zeros(GUEST_OUTCOMES.length);
    this.#secondsSum = 0;
    this.#seconds = zeros(GUEST_SECONDS_BOUNDS.length + 1);
    this.#fuel = zeros(GUEST_FUEL_BUCKETS);
    this.#reportedInstances = instances;
    return figures;
  }
}

/** The outcome of a call that failed. */
export function outcomeOf(code: GuestErrorCode): GuestOutcome {
  if (code === "fuel-limit") return "fuel";
  return code === "memory-limit" ? "memory" : "failed";
}

function zeros(length: number): number[] {
  return Array.from({ length }, () => 0);
}
