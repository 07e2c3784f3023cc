// Bearer tokens as passwords of SASL PLAIN: the operator's token, and JWTs with a `tenant` claim.
import type { TokenVerifier } from "@platform/kernel/identity";
import { isTenant } from "../../topic/name.ts";
import type { CredentialStore } from "./mechanism.ts";

/**
 * Checks users with passwords first; for any other name the password may be a token. The name is then only shown in logs
 * and DescribeGroups. JWTs without a tenant are rejected. SCRAM proves a password without sending it, so it works for
 * users with passwords only.
 */
export function createTokenCredentials(
  users: CredentialStore,
  verifier: TokenVerifier,
): CredentialStore {
  return {
    async verifyPassword(user, password) {
      const principal = await users.verifyPassword(user, password);
      if (principal !== undefined || users.hasUser(user)) return principal;
      const verdict = await verifier.verify(password);
      switch (verdict.kind) {
        case "operator":
          return { name: user, tenant: "" };
        case "user": {
          const { tenant, exp } = verdict.claims;
          if (tenant === undefined || !isTenant(tenant)) return undefined;
          return { name: user, tenant, expiresAtMs: exp * 1000 };
        }
        case "refused":
          return undefined;
        default:
          return verdict satisfies never;
      }
    },
    findScram: (user, mechanism) => users.findScram(user, mechanism),
    hasUser: (user) => users.hasUser(user),
  };
}
