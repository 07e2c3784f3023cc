// Senders of requests whose work is done later: stored without their keys, and found again with the rights of that moment.
import { S3Error } from "../model/s3-error.ts";
import type { StoredPrincipal, StoredRequester } from "../model/requester.ts";
import { type Caller, STORAGE_SCOPES, type StorageScope } from "./authorizer.ts";
import type { Directory } from "./directory.ts";

const ROOT_NAME = "root";

/** The principal of a caller. Throws AccessDenied for anonymous callers, and for sessions with a policy of their own. */
export function storePrincipal(caller: Caller): StoredPrincipal {
  switch (caller.kind) {
    case "anonymous":
      throw new S3Error("AccessDenied");
    case "root":
      return { kind: "root" };
    case "user":
      return { kind: "user", name: caller.name };
    case "session": {
      if (caller.limit !== undefined) {
        throw new S3Error(
          "AccessDenied",
          "A session with a policy of its own cannot start work that outlives it.",
        );
      }
      const { sessionName, sub, username, tenant, issuer, scopes, issuedMs } = caller.session;
      const session = { sessionName, sub, issuer, scopes, issuedMs };
      const named = {
        ...(username === undefined ? {} : { username }),
        ...(tenant === undefined ? {} : { tenant }),
      };
      return { kind: "role", role: caller.role, session: { ...session, ...named } };
    }
    default:
      return caller satisfies never;
  }
}

/** The callers of a requester as they are now; empty if all of its users are disabled and its roles deleted. */
export function findRequester({ principals }: StoredRequester, directory: Directory): Caller[] {
  return principals.flatMap((principal) => findPrincipal(principal, directory));
}

function findPrincipal(principal: StoredPrincipal, directory: Directory): Caller[] {
  switch (principal.kind) {
    case "root":
      return [{ kind: "root", accessKey: ROOT_NAME }];
    case "user": {
      const found = directory.findUser(principal.name);
      if (found === undefined) return [];
      const { name, namespaces } = found.user;
      const accessKey = `user/${name}`;
      return [{ kind: "user", accessKey, name, policies: found.policies, namespaces }];
    }
    case "role": {
      const { role, session } = principal;
      const policies = directory.findRolePolicies(role) ?? [];
      if (policies.length === 0) return [];
      const scopes = session.scopes.filter((scope): scope is StorageScope =>
        Object.values(STORAGE_SCOPES).some((known) => known === scope),
      );
      const accessKey = session.sub;
      return [
        {
          kind: "session",
          accessKey,
          role,
          policies,
          session: { ...session, scopes },
          limit: undefined,
        },
      ];
    }
    default:
      return principal satisfies never;
  }
}

/** The person behind a requester, the same in all of its roles. */
export function identifyRequester({ principals: [principal] }: StoredRequester): string {
  if (principal === undefined) return "nobody";
  if (principal.kind === "root") return ROOT_NAME;
  if (principal.kind === "user") return `user/${principal.name}`;
  const { issuer, tenant = "", sub } = principal.session;
  return `token/${JSON.stringify([issuer, tenant, sub])}`;
}
