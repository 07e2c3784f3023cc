// Permissions of the runtime's API.
import { needScope, type Caller } from "@platform/kernel/identity";

/** Scope of reading states, schedules and logs. */
const READ_SCOPE = "runtime:read";
/** Scope of starting and stopping services and running schedules. */
const MANAGE_SCOPE = "runtime:manage";

/** Throws unless the caller may read. */
export const requireRead = needScope(READ_SCOPE, MANAGE_SCOPE);

/** Throws unless the caller may change the state of services. */
export const requireManage = needScope(MANAGE_SCOPE);

/** The name of a caller, for the list of changes. */
export function describeActor(caller: Caller): string {
  if (caller.kind !== "user") return "operator";
  return caller.claims.username ?? caller.claims.sub ?? "user";
}
