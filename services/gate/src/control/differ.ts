// The differ: what has to change to get from one set of routes to another. Unchanged routes are never named.
import type { RouteKey } from "../shared-state/index.ts";
import type { ResolvedRoute } from "./resolve-route.ts";

/** A whole set of routes by key. */
export type RouteSet = ReadonlyMap<RouteKey, ResolvedRoute>;

/** The difference of two sets; the three lists name disjoint keys. */
export interface RouteDiff {
  added: ResolvedRoute[];
  /** Routes of both sets that behave differently, as they are to be. */
  updated: ResolvedRoute[];
  removed: RouteKey[];
}

/** Compares by behaviour: a route written differently that does the same is unchanged. */
export function diffRoutes(before: RouteSet, after: RouteSet): RouteDiff {
  const diff: RouteDiff = { added: [], updated: [], removed: [] };
  for (const [key, route] of after) {
    const known = before.get(key);
    if (known === undefined) diff.added.push(route);
    else if (known.fingerprint !== route.fingerprint) diff.updated.push(route);
  }
  for (const key of before.keys()) {
    if (!after.has(key)) diff.removed.push(key);
  }
  return diff;
}

/** Whether the two sets behave the same. */
export function isEmptyDiff(diff: RouteDiff): boolean {
  return diff.added.length === 0 && diff.updated.length === 0 && diff.removed.length === 0;
}
