// Keys under which the requests of rate limits are counted.
import type { RatePlace } from "../shared-state/index.ts";

/** A rate limit. */
export interface RateRule {
  /** Number that separates this limit's keys from others in shared memory. */
  space: number;
  /** Name that separates this limit's keys from others in Redis. */
  name: string;
  perMinute: number;
}

/** A key of one limit. */
export interface RateKey {
  readonly rule: RateRule;
  readonly text: string;
  readonly place: RatePlace;
}

/** The key of a client address. */
export interface AddressRateKey extends RateKey {
  readonly address: string;
}
