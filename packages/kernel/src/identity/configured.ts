// Token verifier from a service's configuration: the same keys, errors and warnings in all services.
import type { Logger } from "../log/index.ts";
import type { Secret } from "../secrets/index.ts";
import type { Clock } from "../time/index.ts";
import type { RevocationSet } from "./revocations.ts";
import { createTokenVerifier, isWeakSecret, type TokenVerifier } from "./verifier.ts";

/** Configuration keys of token verification. */
export interface TokenConfig {
  jwt_secret?: string | undefined;
  jwks_url?: string | undefined;
  jwt_issuer?: string | undefined;
  jwt_audience?: string | undefined;
}

/** Options of {@link createConfiguredVerifier}. */
export interface ConfiguredVerifierOptions {
  config: TokenConfig;
  /** Token of the operator. */
  operatorToken?: Secret | undefined;
  /** Revoked tokens are rejected. */
  revocations?: RevocationSet;
  clock: Clock;
  log: Logger;
}

/**
 * Creates the verifier; undefined if no kind of token is configured. Throws if `jwks_url` is set without `jwt_issuer`
 * and `jwt_audience`: tokens issued for other services must not be accepted.
 */
export function createConfiguredVerifier(
  options: ConfiguredVerifierOptions,
): TokenVerifier | undefined {
  const { config, operatorToken, revocations, clock, log } = options;
  const { jwt_secret: secret, jwks_url: url, jwt_issuer: issuer, jwt_audience: audience } = config;
  if (operatorToken === undefined && secret === undefined && url === undefined) return undefined;
  warnOfWeakSecret(secret, log);
  if (url !== undefined && (issuer === undefined || audience === undefined)) {
    throw new Error("jwks_url requires jwt_issuer and jwt_audience");
  }
  return createTokenVerifier({
    clock,
    ...(operatorToken === undefined ? {} : { staticTokens: [operatorToken] }),
    ...(secret === undefined ? {} : { secret }),
    ...(url === undefined ? {} : { jwks: { url, prefetch: true } }),
    ...(issuer === undefined ? {} : { issuer }),
    ...(audience === undefined ? {} : { audience }),
    ...(revocations === undefined ? {} : { isRevoked: (claims) => revocations.hasClaims(claims) }),
  });
}

/** Logs a warning if `jwt_secret` is too short. */
export function warnOfWeakSecret(secret: string | undefined, log: Logger): void {
  if (secret === undefined || !isWeakSecret(secret)) return;
  log.warn("jwt_secret is too short: use at least 32 random bytes");
}
