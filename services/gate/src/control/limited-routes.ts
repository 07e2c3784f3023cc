// Routes of users are limited in what they name; those of the configuration and of the operator are not.
import type { Logger } from "@platform/kernel/log";
import { listNamed } from "../config/guarded-fields.ts";
import type { RouteConfig } from "../config/route.ts";
import { makeRouteKey, makeRouteLabel } from "../shared-state/index.ts";
import type { Confinement } from "../resolve/confinement.ts";
import type { GateState } from "./gate-state.ts";
import { readRouteDefaults } from "./globals.ts";
import type { Overlay } from "./overlay.ts";
import { stringifySorted } from "../resolve/sorted-json.ts";

/**
 * The route as its caller may set it. One that a user sends back as it is active, or as it is configured, keeps its limits.
 */
export function confineFor(
  { isConfined = false }: { isConfined?: boolean },
  route: RouteConfig,
  { base, routes }: GateState,
): RouteConfig {
  if (!isConfined) return route;
  const key = makeRouteKey(route.host, route.prefix, route.methods, route.variant);
  const confined = { ...route, confined: true };
  const wanted = stringifySorted(confined);
  const same = [routes.get(key), base.get(key)].find(
    (known) => known !== undefined && stringifySorted({ ...known, confined: true }) === wanted,
  );
  return same ?? confined;
}

/** A route of the API that names something which only the operator can name. */
export interface UnlimitedRoute {
  /** Host and prefix. */
  route: string;
  /** The first field that names such a thing. */
  field: string;
}

/** Routes that users could not set now: earlier versions set their routes without limits. */
export function listUnlimited(
  { upserts }: Pick<Overlay, "upserts">,
  confinement: Confinement,
): UnlimitedRoute[] {
  return [...upserts.values()].flatMap((route) => {
    if (route.confined === true) return [];
    const named = listNamed(route).find((one) => confinement.findFault(one) !== undefined);
    return named === undefined
      ? []
      : [{ route: makeRouteLabel(route.host, route.prefix), field: named.field }];
  });
}

/** Logs the routes of {@link listUnlimited}. */
export function warnOfUnlimited({ config, overlay }: GateState, log: Logger): void {
  for (const { route, field } of listUnlimited(overlay, readRouteDefaults(config).confinement)) {
    log.warn("a route of the API names something that only the operator can name", {
      route,
      field,
      remedy: "check who set it; remove it, set confined, or move it to the configuration",
    });
  }
}
