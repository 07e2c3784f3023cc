// The token verifiers of a worker: one for each issuer, retained across changes with its keys and cached tokens.
import { createEgress } from "@platform/kernel/egress";
import { createRetryLaterError, createUnauthorizedError } from "@platform/kernel/errors";
import { createTokenVerifier, type TokenProfile, type Verdict } from "@platform/kernel/identity";
import { systemClock } from "@platform/kernel/time";
import type { BearerAuth, JwtSpec, WorkloadAuth } from "../../shared-state/index.ts";
import type { TokenClaims } from "../../exchange/caller.ts";
import type { TokenVerifier, VerifierSource } from "./identity.ts";

/** Maximum number of verifiers; beyond it all are dropped and created again on demand. */
const VERIFIERS_MAX = 1_024;
const KEYS_RETRY_SECONDS = 10;

/**
 * Creates the source. Verifiers throw 401 for invalid and revoked tokens and 503 until the keys of an issuer have been fetched once.
 * Creating a verifier throws a TypeError if a key set lacks what its profile requires.
 */
export function createVerifierSource(
  onKeysError: (url: string, error: unknown) => void,
  isRevoked: (claims: TokenClaims) => boolean,
): VerifierSource {
  const verifiers = new Map<string, TokenVerifier>();
  const share = (spec: JwtSpec): TokenVerifier => {
    const key = JSON.stringify(spec);
    const known = verifiers.get(key);
    if (known !== undefined) return known;
    const verifier = createVerifier(spec, onKeysError, isRevoked);
    if (verifiers.size >= VERIFIERS_MAX) verifiers.clear();
    verifiers.set(key, verifier);
    return verifier;
  };
  return {
    forGlobal: share,
    forRoute: (auth, networks) => {
      const { jwksUrl, audience, leewaySeconds = LEEWAY_SECONDS_DEFAULT } = auth;
      const issuer = auth.type === "bearer" ? auth.issuer : undefined;
      return share({
        jwksUrl,
        ...(issuer === undefined ? {} : { issuer }),
        ...(audience === undefined ? {} : { audience }),
        profile: describeProfile(auth),
        leewaySeconds,
        ...(networks === undefined ? {} : { networks }),
      });
    },
  };
}

const LEEWAY_SECONDS_DEFAULT = 30;

function describeProfile(auth: BearerAuth | WorkloadAuth): TokenProfile {
  if (auth.type === "workload") return { kind: "jwt-svid", trustDomain: auth.trustDomain };
  const isBound = auth.issuer !== undefined && auth.audience !== undefined;
  return { kind: isBound ? "access-token" : "unbound" };
}

function createVerifier(
  spec: JwtSpec,
  onKeysError: (url: string, error: unknown) => void,
  isRevoked: (claims: TokenClaims) => boolean,
): TokenVerifier {
  const { secret, formerSecrets, jwksUrl, issuer, audience, leewaySeconds, profile, networks } =
    spec;
  const verifier = createTokenVerifier({
    clock: systemClock,
    leewaySeconds,
    ...(secret === undefined ? {} : { secret }),
    ...(formerSecrets === undefined ? {} : { formerSecrets }),
    ...(issuer === undefined ? {} : { issuer }),
    ...(audience === undefined ? {} : { audience }),
    ...(profile === undefined ? {} : { profile }),
    isRevoked,
    ...(jwksUrl === undefined
      ? {}
      : {
          jwks: {
            url: jwksUrl,
            prefetch: true,
            ...(networks === undefined
              ? {}
              : { fetch: createEgress({ allowedNetworks: networks, callsMax: 1 }) }),
            onError: (error: unknown) => onKeysError(jwksUrl, error),
          },
        }),
  });
  return (token) => {
    const verdict = verifier.verify(token);
    return verdict instanceof Promise ? verdict.then(takeClaims) : takeClaims(verdict);
  };
}

function takeClaims(verdict: Verdict): TokenClaims {
  if (verdict.kind === "user") return verdict.claims;
  if (verdict.kind === "refused" && verdict.code === "keys_unavailable") {
    throw createRetryLaterError("unavailable", verdict.detail, KEYS_RETRY_SECONDS);
  }
  const { detail, reason } =
    verdict.kind === "refused"
      ? verdict
      : { detail: "The token is not valid.", reason: "The token is not a user token." };
  throw createUnauthorizedError(detail, 'Bearer error="invalid_token"', reason);
}
