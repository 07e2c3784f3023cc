// Rights to the data of projects: for all of them, or for one by its name.
import { PlatformError } from "@platform/kernel/errors";
import {
  createScopeError,
  declareScopes,
  hasScope,
  type Caller,
  type ScopeCheck,
} from "@platform/kernel/identity";

/** A right to data: reading tables, changing rows, running statements. */
export type DataRight = "read" | "edit" | "query";

/** Rights that contain another one. */
const SUFFICIENT: Readonly<Record<DataRight, readonly DataRight[]>> = {
  read: ["read", "edit", "query"],
  edit: ["edit"],
  query: ["query"],
};

/** True if the caller has a right to the data of a project. */
export function hasDataRight(caller: Caller, right: DataRight, project: string): boolean {
  const scopes = SUFFICIENT[right].flatMap((one) => [`data:${one}`, `data:${one}:${project}`]);
  return hasScope(caller, ...scopes);
}

/** Throws 403 unless the caller has a right to the data of a project. */
export function requireDataRight(caller: Caller, right: DataRight, project: string): void {
  if (!hasDataRight(caller, right, project)) throw createScopeError(`data:${right}`);
}

/** A check that the caller has a right to the data of any project; the operation then checks which. */
export function needDataRight(right: DataRight): ScopeCheck {
  const check = (caller: Caller): void => {
    if (caller.kind === "anonymous") throw new PlatformError("unauthorized");
    if (!hasAnyDataRight(caller, right)) throw createScopeError(`data:${right}`);
  };
  return declareScopes(check, ...SUFFICIENT[right].map((one) => `data:${one}`));
}

/** True if the caller has a right to the data of at least one project. */
export function hasAnyDataRight(caller: Caller, right: DataRight): boolean {
  const names = SUFFICIENT[right].map((one) => `data:${one}`);
  if (hasScope(caller, ...names)) return true;
  if (caller.kind !== "user") return false;
  return caller.claims.scope.some((scope) => names.some((name) => scope.startsWith(`${name}:`)));
}
