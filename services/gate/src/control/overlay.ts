// The overlay: changes made through the API on top of the configured routes, as upserts and tombstones.
import { createHash } from "node:crypto";
import { PlatformError } from "@platform/kernel/errors";
import { z } from "zod";
import { type RouteConfig, routeSchema } from "../config/route.ts";
import { type RouteKey, makeRouteKey } from "../shared-state/index.ts";
import { stringifySorted } from "../resolve/sorted-json.ts";

const FORMAT_VERSION = 1;

/** Identifies a route. */
export interface RouteName {
  readonly prefix: string;
  readonly host?: string;
  readonly methods?: readonly string[];
  readonly variant?: string;
}

/** Changes on top of a base. A key is in at most one of the two maps. */
export interface Overlay {
  readonly upserts: ReadonlyMap<RouteKey, RouteConfig>;
  readonly tombstones: ReadonlyMap<RouteKey, RouteName>;
}

/** Routes by key. */
export type RouteConfigs = ReadonlyMap<RouteKey, RouteConfig>;

/** An overlay without changes. */
export const EMPTY_OVERLAY: Overlay = { upserts: new Map(), tombstones: new Map() };

/** True if the overlay has no changes. */
export function isEmptyOverlay(overlay: Overlay): boolean {
  return overlay.upserts.size === 0 && overlay.tombstones.size === 0;
}

/** Indexes routes by key; the last of two routes with the same key wins, but the schema refuses duplicates. */
export function indexRoutes(routes: readonly RouteConfig[]): RouteConfigs {
  return new Map(routes.map((route) => [keyOf(route), route]));
}

/** Applies the overlay to the base: routes of the base in their order, then added routes. */
export function applyOverlay(base: RouteConfigs, overlay: Overlay): RouteConfigs {
  const result = new Map<RouteKey, RouteConfig>();
  for (const [key, route] of base) {
    if (!overlay.tombstones.has(key)) result.set(key, overlay.upserts.get(key) ?? route);
  }
  for (const [key, route] of overlay.upserts) result.set(key, route);
  return result;
}

/** Sets one route in the overlay. A route equal to the base is not stored, so that later changes of the base apply. */
export function upsertRoute(overlay: Overlay, base: RouteConfigs, route: RouteConfig): Overlay {
  const key = keyOf(route);
  const upserts = new Map(overlay.upserts);
  const tombstones = new Map(overlay.tombstones);
  tombstones.delete(key);
  const known = base.get(key);
  if (known !== undefined && isSameRoute(known, route)) upserts.delete(key);
  else upserts.set(key, route);
  return { upserts, tombstones };
}

/** Removes one route in the overlay, with a tombstone if the base contains it. */
export function removeRoute(overlay: Overlay, base: RouteConfigs, name: RouteName): Overlay {
  const key = keyOf(name);
  const upserts = new Map(overlay.upserts);
  const tombstones = new Map(overlay.tombstones);
  upserts.delete(key);
  if (base.has(key)) tombstones.set(key, nameOf(name));
  return { upserts, tombstones };
}

/** Computes the smallest overlay that turns the base into `routes`. */
export function replaceRoutes(base: RouteConfigs, routes: RouteConfigs): Overlay {
  const upserts = new Map<RouteKey, RouteConfig>();
  const tombstones = new Map<RouteKey, RouteName>();
  for (const [key, route] of routes) {
    const known = base.get(key);
    if (known === undefined || !isSameRoute(known, route)) upserts.set(key, route);
  }
  for (const [key, route] of base) {
    if (!routes.has(key)) tombstones.set(key, nameOf(route));
  }
  return { upserts, tombstones };
}

/**
 * Replaces the routes that a service has registered. Throws `conflict` if a route of another origin would be replaced.
 */
export function registerRoutes(
  overlay: Overlay,
  base: RouteConfigs,
  service: string,
  routes: RouteConfigs,
): Overlay {
  const active = applyOverlay(base, overlay);
  const upserts = new Map(overlay.upserts);
  const tombstones = new Map(overlay.tombstones);
  for (const [key, route] of upserts) if (route.registered_by === service) upserts.delete(key);
  for (const [key, route] of routes) {
    const known = active.get(key);
    if (known !== undefined && known.registered_by !== service) {
      throw new PlatformError("conflict", `${key.trim()} is already a route of another origin`);
    }
    tombstones.delete(key);
    upserts.set(key, route);
  }
  return { upserts, tombstones };
}

/** Encodes the overlay for the disk: format version, checksum, content. */
export function encodeOverlay(overlay: Overlay): string {
  const content = {
    upserts: [...overlay.upserts.values()],
    tombstones: [...overlay.tombstones.values()],
  };
  const document = { version: FORMAT_VERSION, sha256: digest(content), ...content };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** Decodes the output of {@link encodeOverlay}. Throws an Error that describes the fault. */
export function decodeOverlay(text: string): Overlay {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    throw new Error("it is not JSON");
  }
  const version = versionSchema.safeParse(document);
  if (version.success && version.data.version !== FORMAT_VERSION) {
    throw new Error(
      `its format version is ${version.data.version}, this release reads version ${FORMAT_VERSION}`,
    );
  }
  const parsed = overlaySchema.safeParse(document);
  if (!parsed.success) throw new Error("it is not an overlay");
  const { sha256, upserts, tombstones } = parsed.data;
  if (digest({ upserts, tombstones }) !== sha256) {
    throw new Error("its checksum does not match: it is damaged or was edited");
  }
  const routes = upserts.map((value) => {
    const route = routeSchema.safeParse(value);
    if (route.success) return route.data;
    const issue = route.error.issues[0];
    throw new Error(
      `its route ${JSON.stringify(value["prefix"])} is invalid: ${issue?.path.join(".")} ${issue?.message}`,
    );
  });
  return {
    upserts: indexRoutes(routes),
    tombstones: new Map(
      tombstones.map((given) => {
        const name = nameOf(given);
        return [keyOf(name), name];
      }),
    ),
  };
}

/** True if two routes are equal, regardless of the order of their keys. */
function isSameRoute(left: RouteConfig, right: RouteConfig): boolean {
  return stringifySorted(left) === stringifySorted(right);
}

const versionSchema = z.looseObject({ version: z.number() });

const overlaySchema = z.strictObject({
  version: z.literal(FORMAT_VERSION),
  sha256: z.string(),
  upserts: z.array(z.record(z.string(), z.unknown())),
  tombstones: z.array(
    z.strictObject({
      prefix: z.string(),
      host: z.string().optional(),
      methods: z.array(z.string()).optional(),
      variant: z.string().optional(),
    }),
  ),
});

function keyOf({ host, prefix, methods, variant }: RouteName): RouteKey {
  return makeRouteKey(host, prefix, methods, variant);
}

function nameOf({
  prefix,
  host,
  methods,
  variant,
}: {
  prefix: string;
  host?: string | undefined;
  methods?: readonly string[] | undefined;
  variant?: string | undefined;
}): RouteName {
  return {
    prefix,
    ...(host === undefined ? {} : { host }),
    ...(methods === undefined ? {} : { methods }),
    ...(variant === undefined ? {} : { variant }),
  };
}

function digest(content: { upserts: unknown; tombstones: unknown }): string {
  return createHash("sha256").update(stringifySorted(content)).digest("hex");
}
