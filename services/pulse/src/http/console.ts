// The web console of messaging.
import { ServiceConsole } from "@platform/console";
import { createBearerGuard } from "@platform/kernel/http";
import type { TokenVerifier } from "@platform/kernel/identity";
import type { Clock } from "@platform/kernel/time";
import { PULSE_VERSION, type PulseConfig } from "../config.ts";
import { createTenantGuard } from "./admission.ts";

/** Creates the console. Without a verifier only programs on this machine have access. */
export function createConsole(
  config: PulseConfig,
  verifier: TokenVerifier | undefined,
  clock: Clock,
): ServiceConsole {
  return new ServiceConsole({
    id: "pulse",
    version: PULSE_VERSION,
    features: ["topics", "tail", "schemas", "transforms", "dlq", "rules", "stats", "connections"],
    credentials: verifier === undefined ? undefined : "token",
    guard: createTenantGuard(createBearerGuard(verifier)),
    publicUrl: config.console_url,
    isTls: config.tls_cert !== undefined,
    clock,
  });
}
