// The web console of the relay.
import type { OperationOptions } from "@platform/chassis";
import type { RelayConfig } from "../config.ts";

/** Describes the console. */
export function describeConsole(config: RelayConfig): OperationOptions["console"] {
  const hasCredentials =
    config.auth_token !== undefined ||
    config.jwt_secret !== undefined ||
    config.jwks_url !== undefined;
  return {
    features: ["tunnels", "shares", ...(config.max_ring_buffer === 0 ? [] : ["requests"])],
    credentials: hasCredentials ? "token" : undefined,
  };
}
