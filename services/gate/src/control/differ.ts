// Computes the difference between two sets of routes.
import type { RouteKey } from "../shared-state/index.ts";
import type { ResolvedRoute } from "../resolve/resolve-route.ts";

/** A set of routes by key. */
export type RouteSet = ReadonlyMap<RouteKey, ResolvedRoute>;

/** The difference between two sets; the keys of the three lists are disjoint. */
export interface RouteDiff {
  added: ResolvedRoute[];
  /** Routes of both sets whose behavior differs, in their new form. */
  updated: ResolvedRoute[];
  removed: RouteKey[];
}

/** Compares by behavior: a route that is written differently but behaves the same is unchanged. */
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

/** True if the difference is empty. */
export function isEmptyDiff(diff: RouteDiff): boolean {
  return diff.added.length === 0 && diff.updated.length === 0 && diff.removed.length === 0;
}
