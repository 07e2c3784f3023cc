// Callers that the directory knows: owners of users' keys, and users of tokens in their roles.
import { includesScope, type Claims } from "@platform/kernel/identity";
import { type Caller, type SessionCaller, STORAGE_SCOPES } from "./authorizer.ts";
import type { Directory } from "./directory.ts";

const SESSION_NAME_CHARACTERS_MAX = 64;

/** The secret and the owner of a user's key; `undefined` if it is unknown or disabled. */
export function findUserKey(
  accessKey: string,
  directory: Directory,
): { secret: string; owner: Caller } | undefined {
  const found = directory.findKey(accessKey);
  if (found === undefined) return undefined;
  const { user, policies, secret } = found;
  const { name, namespaces } = user;
  return { secret, owner: { kind: "user", accessKey, name, policies, namespaces } };
}

/**
 * The user of a token in each of its roles that has policies: what AssumeRoleWithWebIdentity would give it, without keys.
 * Empty without such a role, or without a scope of storage.
 */
export function listRoleCallers(claims: Claims, directory: Directory): SessionCaller[] {
  const { sub, iss: issuer = "", username, tenant } = claims;
  const scopes = Object.values(STORAGE_SCOPES).filter((name) => includesScope(claims.scope, name));
  if (sub === undefined || scopes.length === 0) return [];
  const session: SessionCaller["session"] = {
    sessionName: toSessionName(sub),
    sub,
    ...(username === undefined ? {} : { username }),
    ...(tenant === undefined ? {} : { tenant }),
    issuer,
    scopes,
    issuedMs: (claims.iat ?? 0) * 1_000,
  };
  return claims.roles.flatMap((role): SessionCaller[] => {
    const policies = directory.findRolePolicies(role) ?? [];
    if (policies.length === 0) return [];
    return [{ kind: "session", accessKey: sub, role, policies, session, limit: undefined }];
  });
}

/** The name of a person's session: their subject, with the characters that session names may have. */
function toSessionName(subject: string): string {
  return subject
    .replaceAll(/[^\w+=,.@-]/g, "-")
    .slice(0, SESSION_NAME_CHARACTERS_MAX)
    .padEnd(2, "-");
}
