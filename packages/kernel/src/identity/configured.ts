// The verifier as a service's configuration has it: the same keys, the same refusals and warnings in each.
import type { Logger } from "../log/index.ts";
import type { Clock } from "../time/index.ts";
import { createTokenVerifier, isWeakSecret, type TokenVerifier } from "./verifier.ts";

/** The keys of the configuration that say whose tokens are taken. */
export interface TokenConfig {
  jwt_secret?: string | undefined;
  jwks_url?: string | undefined;
  jwt_issuer?: string | undefined;
  jwt_audience?: string | undefined;
}

/** What a verifier is made of. */
export interface ConfiguredVerifierOptions {
  config: TokenConfig;
  /** Makes its holder the operator. */
  operatorToken?: string | undefined;
  clock: Clock;
  log: Logger;
}

/**
 * Makes the verifier; undefined where no kind of token is configured. Throws where `jwks_url` stands without `jwt_issuer` and
 * `jwt_audience`: tokens that were made for others must not pass.
 */
export function createConfiguredVerifier(
  options: ConfiguredVerifierOptions,
): TokenVerifier | undefined {
  const { config, operatorToken, clock, log } = options;
  const { jwt_secret: secret, jwks_url: url, jwt_issuer: issuer, jwt_audience: audience } = config;
  if (operatorToken === undefined && secret === undefined && url === undefined) return undefined;
  warnOfWeakSecret(secret, log);
  if (url !== undefined && (issuer === undefined || audience === undefined)) {
    throw new Error("jwks_url needs jwt_issuer and jwt_audience");
  }
  return createTokenVerifier({
    clock,
    ...(operatorToken === undefined ? {} : { staticTokens: [operatorToken] }),
    ...(secret === undefined ? {} : { secret }),
    ...(url === undefined ? {} : { jwks: { url } }),
    ...(issuer === undefined ? {} : { issuer }),
    ...(audience === undefined ? {} : { audience }),
  });
}

/** Says in the log that `jwt_secret` can be guessed, where it can. */
export function warnOfWeakSecret(secret: string | undefined, log: Logger): void {
  if (secret === undefined || !isWeakSecret(secret)) return;
  log.warn("jwt_secret is short and can be guessed: give it at least 32 random bytes");
}
