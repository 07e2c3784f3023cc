// Converts claims to the form of the kernel's guards.
import type { Claims } from "@platform/kernel/identity";
import type { VerifiedAccessToken } from "./access-token.ts";

/** A verified token as a caller. Key-bound tokens are rejected, because only userinfo verifies their proofs. */
export function toKernelClaims(verified: VerifiedAccessToken | undefined): Claims | undefined {
  if (verified === undefined || verified.claims.cnf !== undefined) return undefined;
  const { aud, scope, ...claims } = verified.claims;
  return {
    ...claims,
    aud: [aud],
    scope: scope?.split(" ") ?? [],
    all: { ...verified.claims },
  };
}
