// Identification of callers, and the bounds on their failures.
import type { Service } from "@platform/chassis";
import { AddressSet } from "@platform/kernel/network";
import type { RelayConfig } from "../config.ts";
import { createRelayGuard, type RelayGuard } from "../identity.ts";
import { createThrottles, type Throttles } from "../relay/throttle.ts";

/** The parts. */
export interface Callers {
  readonly guard: RelayGuard;
  readonly throttles: Throttles;
  readonly trusted: AddressSet;
}

/** Creates the parts. Throws if a configured token is malformed. */
export function openCallers(config: RelayConfig, { verifier, clock, lifecycle }: Service): Callers {
  return {
    guard: createRelayGuard(config, verifier, (value) =>
      lifecycle.followSecret("PLATFORM_TUNNEL_AUTH_TOKEN", value),
    ),
    throttles: createThrottles(clock),
    trusted: new AddressSet(config.trusted_proxies),
  };
}
