// WebAssembly guests: the modules that workers run, their use by a route, and the figures that workers report.
import type { HttpModule } from "@platform/wasm/http";

/** A named guest with its versions, the newest first. */
export interface NamedGuest {
  readonly name: string;
  readonly versions: readonly HttpModule[];
}

/** A change of the registered guests. The first change of a worker contains all. */
export interface GuestChange {
  readonly set: readonly NamedGuest[];
  readonly removed: readonly string[];
}

/** Limits of the guests of one worker. */
export interface GuestLimits {
  /** Linear memory of all instances in bytes. */
  readonly memoryBytes: number;
  /** Units of fuel of a call. */
  readonly fuelPerCall: number;
  /** Lines below this level are not passed on: -1 debug, 0 info, 1 warn, 2 error. */
  readonly logLevel: number;
}

export const GUEST_LIMITS_DEFAULT: GuestLimits = {
  memoryBytes: 268_435_456,
  fuelPerCall: 5_000_000,
  logLevel: 0,
};

/** Choice between the guests of a split that one client keeps. */
export type SplitSticky =
  | { readonly by: "none" | "ip" | "cookie" }
  | { readonly by: "header"; readonly name: string };

/** Use of guests by a route. Names may be followed by `@` and the first 12 digits of a digest. */
export interface GuestsSpec {
  /** Its `handle_request` is called. */
  readonly request?: string;
  /** Its `handle_response` is called. */
  readonly response?: string;
  /** Instead of both: each request passes both functions of one of these, by their weights. */
  readonly split?: {
    readonly targets: readonly { readonly name: string; readonly weight: number }[];
    readonly sticky: SplitSticky;
  };
  /** Result of `get_config`. */
  readonly config: string;
}

/** Outcomes of calls. */
export const GUEST_OUTCOMES = ["next", "answered", "failed", "fuel", "memory"] as const;

/** One of {@link GUEST_OUTCOMES}. */
export type GuestOutcome = (typeof GUEST_OUTCOMES)[number];

/** Upper bounds of the durations of calls in seconds. */
export const GUEST_SECONDS_BOUNDS: readonly number[] = [
  0.000_001, 0.000_005, 0.000_01, 0.000_05, 0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05,
];

/** Powers of 2 that bound the fuel of calls. */
export const GUEST_FUEL_BUCKETS = 32;

/** Calls of a guest on one worker since its last report. */
export interface GuestFigures {
  readonly name: string;
  /** By {@link GUEST_OUTCOMES}. */
  readonly outcomes: readonly number[];
  readonly secondsSum: number;
  /** Not cumulative; one more entry than {@link GUEST_SECONDS_BOUNDS}. */
  readonly seconds: readonly number[];
  /** Calls that used less than 2^index units of fuel, and not less than 2^(index − 1). */
  readonly fuel: readonly number[];
  /** Fields that the guest could not change, because they belong to the framing or to a connection. */
  readonly ignoredFields: number;
  /** Instances that exist now. */
  readonly instances: number;
}

/** Maximum number of registered guests. */
export const GUESTS_MAX = 1_000;

/** Number of versions of a guest that stay usable. */
export const GUEST_VERSIONS_MAX = 5;

/** Digits of a digest that select a version. */
export const GUEST_DIGEST_CHARACTERS = 12;

/** A name with the digits of a digest, or without them. */
export function splitGuestReference(reference: string): { name: string; digest: string } {
  const [name = "", digest = ""] = reference.split("@", 2);
  return { name, digest };
}
