// Changes that need a recent sign-in: deletions, and changes of people and keys.
import type { Clock } from "@platform/kernel/time";
import type { Session } from "../session/session.ts";
import { createConsoleError } from "../errors.ts";

/** Age at which a sign-in is no longer recent. */
export const RECENT_MS = 600_000;

/** Names of resources that give access to people or programs. */
const SENSITIVE: ReadonlySet<string> = new Set([
  "access-keys",
  "api-keys",
  "applications",
  "clients",
  "groups",
  "keys",
  "policies",
  "policy",
  "rbac",
  "roles",
  "scopes",
  "users",
]);

/** Deletes many objects by POST. */
const DELETE_MANY = /^\/api\/v1\/buckets\/[^/]+\/delete$/;

/** Throws 401 (RFC 9470) if the request needs a more recent sign-in than that of the session. */
export function checkRecentSignIn(
  method: string,
  path: string,
  session: Session,
  clock: Clock,
): void {
  if (!isSensitive(method, path) || clock.now() - session.authenticatedMs < RECENT_MS) return;
  throw createConsoleError("recent_sign_in_required");
}

// Objects and messages can have any name, so that only the resource itself counts: `/api/v1/users/…`, `/api/v1/admin/api-keys`.
function isSensitive(method: string, path: string): boolean {
  if (method === "DELETE") return true;
  if (method === "GET" || method === "HEAD") return false;
  if (method === "POST" && DELETE_MANY.test(path)) return true;
  const segments = path.split("/").slice(1, 6);
  const resource = segments.slice(segments[0] === "api" ? 2 : 0);
  const isNested = ["admin", "auth"].includes(resource[0] ?? "");
  return SENSITIVE.has(resource[0] ?? "") || (isNested && SENSITIVE.has(resource[1] ?? ""));
}
