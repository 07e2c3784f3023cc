// The complete desired state of the gateway: configuration and overlay, resolved.
import { PlatformError } from "@platform/kernel/errors";
import { createEtag } from "@platform/kernel/http";
import type { GateConfig } from "../config/document.ts";
import { findSharedMethods } from "../config/route-methods.ts";
import { type GlobalSpec, ROUTES_MAX, type RouteKey } from "../shared-state/index.ts";
import type { RouteSet } from "./differ.ts";
import { readRouteDefaults, type UsedLogs } from "./globals.ts";
import type { NetworkLists } from "../resolve/network-lists.ts";
import { type Overlay, type RouteConfigs, applyOverlay, indexRoutes } from "./overlay.ts";
import type { FindService } from "../source/discovery.ts";
import { type ResolvedRoute, renewServices, resolveRoute } from "../resolve/resolve-route.ts";

/** Builds the settings that do not belong to a route; throws ConfigError. */
export type BuildGlobals = (config: GateConfig, logs: UsedLogs) => GlobalSpec;

/** Parts that a state is built with. */
export interface StateParts {
  readonly buildGlobals: BuildGlobals;
  readonly networks: NetworkLists;
  /** Undefined without service discovery. */
  readonly findService?: FindService | undefined;
}

/** The complete desired state of the gateway. */
export interface GateState {
  readonly config: GateConfig;
  /** Routes of the configuration without the overlay. */
  readonly base: RouteConfigs;
  readonly overlay: Overlay;
  /** The active routes. */
  readonly routes: RouteConfigs;
  readonly resolved: RouteSet;
  readonly globals: GlobalSpec;
  /** Entity tag of the active routes; equal for equal routes, also after a restart. */
  readonly etag: string;
}

/**
 * Builds the state of a configuration and an overlay. Reuses lists of networks and the resolved routes of `known`, with the
 * present addresses of services.
 */
export function buildState(
  config: GateConfig,
  overlay: Overlay,
  { buildGlobals, networks, findService }: StateParts,
  known?: RouteSet,
): GateState {
  if (known === undefined) networks.begin();
  const base = indexRoutes(config.routes);
  const routes = applyOverlay(base, overlay);
  if (routes.size > ROUTES_MAX) {
    throw new PlatformError(
      "validation_failed",
      `${routes.size} routes exceed the maximum of ${ROUTES_MAX}`,
    );
  }
  const [shared] = findSharedMethods([...routes.values()]);
  if (shared !== undefined) {
    throw new PlatformError(
      "validation_failed",
      `two routes with the same prefix and host have the method ${shared.method}`,
    );
  }
  const defaults = readRouteDefaults(config, findService);
  const resolved = new Map<RouteKey, ResolvedRoute>();
  const logs: UsedLogs = { access: false, recording: false };
  for (const [key, route] of routes) {
    const before = known?.get(key);
    const isKnown = before !== undefined && before.config === route;
    resolved.set(
      key,
      isKnown ? renewServices(before, defaults) : resolveRoute(route, defaults, networks),
    );
    logs.access ||= route.access_log === true;
    logs.recording ||= resolved.get(key)!.spec.steps.record !== undefined;
  }
  const globals = buildGlobals(config, logs);
  if (known === undefined) networks.end();
  return { config, base, overlay, routes, resolved, globals, etag: makeEtag(resolved) };
}

/** A strong entity tag of a set of routes, independent of their order. */
function makeEtag(routes: RouteSet): string {
  const texts = [...routes.keys()].sort().map((key) => routes.get(key)?.text);
  return createEtag(texts.join("\n"));
}
