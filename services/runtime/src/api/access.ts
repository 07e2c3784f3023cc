// Permissions of the runtime's API.
import { PlatformError } from "@platform/kernel/errors";
import { needScope, type Caller } from "@platform/kernel/identity";

/** Scope of reading states, schedules and logs. */
const READ_SCOPE = "runtime:read";
/** Scope of starting and stopping services and running schedules. */
const MANAGE_SCOPE = "runtime:manage";

/** Throws unless the caller may read. */
export const requireRead = needScope(READ_SCOPE, MANAGE_SCOPE);

/** Throws unless the caller may change the state of services. */
export const requireManage = needScope(MANAGE_SCOPE);

/** Throws unless the caller has the token in the data folder. */
export function requireOperator(caller: Caller): void {
  if (caller.kind === "operator") return;
  throw new PlatformError("forbidden", "Only the holder of the data folder's token may do this.");
}

/** The name of a caller, for the list of changes. */
export function describeActor(caller: Caller): string {
  if (caller.kind !== "user") return "operator";
  return caller.claims.username ?? caller.claims.sub ?? "user";
}
