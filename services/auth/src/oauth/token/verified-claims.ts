// Our claims in the form that the kernel's guards take.
import type { Claims } from "@platform/kernel/identity";
import type { VerifiedAccessToken } from "./access-token.ts";

/** A verified token as a caller; key-bound ones are none, for nobody but userinfo checks their proofs. */
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
