// Routes of users are limited in what they name; those of the configuration and of the operator are not.
import type { Logger } from "@platform/kernel/log";
import { listNamed } from "../config/guarded-fields.ts";
import type { RouteConfig } from "../config/route.ts";
import { makeRouteKey, makeRouteLabel } from "../shared-state/index.ts";
import type { GateState } from "./gate-state.ts";
import { readRouteDefaults } from "./globals.ts";
import { stringifySorted } from "./sorted-json.ts";

/**
 * The route as its caller may set it. One that a user sends back as it is active, or as it is configured, keeps its limits.
 */
export function confineFor(
  { isConfined = false }: { isConfined?: boolean },
  route: RouteConfig,
  { base, routes }: GateState,
): RouteConfig {
  if (!isConfined) return route;
  const key = makeRouteKey(route.host, route.prefix, route.methods);
  const confined = { ...route, confined: true };
  const wanted = stringifySorted(confined);
  const same = [routes.get(key), base.get(key)].find(
    (known) => known !== undefined && stringifySorted({ ...known, confined: true }) === wanted,
  );
  return same ?? confined;
}

/** Logs routes of the API that users could not set: earlier versions set their routes without limits. */
export function warnOfUnlimited({ config, overlay }: GateState, log: Logger): void {
  const { confinement } = readRouteDefaults(config);
  for (const route of overlay.upserts.values()) {
    if (route.confined === true) continue;
    const named = listNamed(route).find((one) => confinement.findFault(one) !== undefined);
    if (named === undefined) continue;
    log.warn("a route of the API names something that only the operator can name", {
      route: makeRouteLabel(route.host, route.prefix),
      field: named.field,
      remedy: "check who set it; remove it, set confined, or move it to the configuration",
    });
  }
}
