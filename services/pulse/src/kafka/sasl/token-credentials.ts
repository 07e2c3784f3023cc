// Bearer tokens as passwords of SASL PLAIN: the operator's token, and JWTs with a `tenant` claim.
import { toRevocable, type Claims, type TokenVerifier } from "@platform/kernel/identity";
import { isTenant } from "../../topic/name.ts";
import type { TopicRules } from "../../access/topic-rules.ts";
import { ALL_RIGHTS, hasAnyRight, type Rights } from "../../topic/rights.ts";
import type { Principal } from "../../user/principal.ts";
import type { CredentialStore } from "./mechanism.ts";

/** User name with which the operator acts for a tenant: `operator@TENANT`. */
const OPERATOR_FOR_TENANT = /^operator@(.*)$/s;

/**
 * Checks users with passwords first; for any other name the password may be a token. The name is then only shown in logs
 * and DescribeGroups; the operator chooses the tenant by it. JWTs without a tenant, and without both a scope of messaging and a role with topic rules, are
 * rejected. SCRAM proves a password without sending it, so it works for users with passwords only.
 */
export function createTokenCredentials(
  users: CredentialStore,
  verifier: TokenVerifier,
  rules: Pick<TopicRules, "rightsOf">,
): CredentialStore {
  return {
    async verifyPassword(user, password) {
      const principal = await users.verifyPassword(user, password);
      if (principal !== undefined || users.hasUser(user)) return principal;
      const verdict = await verifier.verify(password);
      switch (verdict.kind) {
        case "operator":
          return toOperator(user);
        case "user":
          return toPrincipal(user, verdict.claims, rules.rightsOf(verdict.claims));
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

/** The operator, whose topics have no tenant; of the form `operator@TENANT`, for that tenant. Undefined if it is invalid. */
function toOperator(name: string): Principal | undefined {
  const tenant = OPERATOR_FOR_TENANT.exec(name)?.[1];
  if (tenant === undefined) return { name, tenant: "", rights: ALL_RIGHTS };
  return isTenant(tenant) ? { name, tenant, rights: ALL_RIGHTS } : undefined;
}

function toPrincipal(name: string, claims: Claims, rights: Rights): Principal | undefined {
  const { tenant, exp } = claims;
  if (tenant === undefined || !isTenant(tenant) || !hasAnyRight(rights)) return undefined;
  return { name, tenant, rights, expiresAtMs: exp * 1000, token: toRevocable(claims) };
}
