// The web console of the relay.
import { ServiceConsole } from "@platform/console";
import type { Clock } from "@platform/kernel/time";
import { VERSION, type RelayConfig } from "../config.ts";
import type { RelayGuard } from "../identity.ts";

/** Creates the console. */
export function createConsole(options: {
  config: RelayConfig;
  guard: RelayGuard;
  clock: Clock;
}): ServiceConsole {
  const { config, guard, clock } = options;
  const hasCredentials =
    config.auth_token !== undefined ||
    config.jwt_secret !== undefined ||
    config.jwks_url !== undefined;
  return new ServiceConsole({
    id: "tunnel",
    version: VERSION,
    features: ["tunnels", "shares", ...(config.max_ring_buffer === 0 ? [] : ["requests"])],
    credentials: hasCredentials ? "token" : undefined,
    guard,
    publicUrl: config.console_url,
    isTls: config.tls_cert !== undefined,
    clock,
  });
}
