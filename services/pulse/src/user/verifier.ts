// The verifier of tokens, as configured.
import {
  createConfiguredVerifier,
  type RevocationSet,
  type TokenVerifier,
} from "@platform/kernel/identity";
import type { Logger } from "@platform/kernel/log";
import { systemClock } from "@platform/kernel/time";
import type { PulseConfig } from "../config.ts";

/** Creates the verifier; undefined if no credentials are configured, which is logged. */
export function createVerifier(
  config: PulseConfig,
  revocations: RevocationSet,
  log: Logger,
): TokenVerifier | undefined {
  const verifier = createConfiguredVerifier({
    config,
    revocations,
    operatorToken: config.token,
    clock: systemClock,
    log,
  });
  if (verifier === undefined) {
    log.warn("no credentials are configured: only programs on this machine are answered");
  }
  return verifier;
}
