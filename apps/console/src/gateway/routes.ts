// Routes as the gateway's API lists them.
import type { Answer } from "../contract/answer.ts";
import { signal } from "@preact/signals";
import { ApiFailure, call, segment, send } from "../api/api.ts";
import { api, callService } from "../session/session.ts";
import { t } from "../words/words.ts";
import type { Settings } from "./route-versions.ts";

// The text is sent as it was written: places of problems are those of the editor.
const JSON_TYPE = { "content-type": "application/json" };

/** State of a target. */
export type Target = Route["status"]["targets"][number];

/** A share that a canary had, or has. */
export type CanaryStep = Canary["steps"][number];

/** The automatic promotion of a route's last target. */
export type Canary = NonNullable<Route["status"]["canary"]>;

/** A route; other members are its settings. */
export type Route = Answer<"gate", "GET /routes">[number] & { [setting: string]: unknown };

/** Access to a route in a word: the kind of its check, or that there is none. */
export function accessOf({ auth }: Route): string {
  return auth === undefined || auth.type === "none" ? t("open to all") : auth.type;
}

/** Name of a route: host and prefix, and its methods and variant if it has some. */
export function nameOf({ host = "", prefix, methods, variant }: Route): string {
  const list = methods === undefined ? "" : ` ${methods.join(",")}`;
  return host + prefix + list + (variant === undefined ? "" : ` #${variant}`);
}

/** Path and methods of a route, as people tell it from others of its host. */
export function placeOf({ prefix, methods = [], variant, paths = [] }: Route): string {
  return variant === undefined ? prefix : `${paths[0] ?? prefix} ${methods.join(",")}`;
}

/** The project that sets a route, which is changed there and not here; undefined for other routes. */
export function projectOf({ registered_by: origin = "" }: Route): string | undefined {
  return /^project-(.+)$/.exec(origin)?.[1];
}

/** Path of a route's page. */
export function routePath(route: Route, tab = ""): string {
  return pathOfName(nameOf(route), tab);
}

/** Path of the page of the route with a name. */
export function pathOfName(name: string, tab = ""): string {
  return `/gateway/routes/${encodeURIComponent(name)}${tab === "" ? "" : `/${tab}`}`;
}

/** Permission to change routes. */
export const CHANGE = "gate:admin";

export async function loadRoutes(): Promise<Route[]> {
  return await callService<Answer<"gate", "GET /routes">>("gate", "/routes");
}

/** The settings of a route without its state, as its configuration has them. */
export function settingsOf(route: Route): Settings {
  const { status: _state, ...settings } = route;
  return settings;
}

/** Settings as the text that is edited. */
export function formatSettings(settings: Settings): string {
  return JSON.stringify(settings, null, 2);
}

/** Effect of saving a route. */
export type RouteCheck = Answer<"gate", "POST /routes/check">;

/** Tries a route without changing anything. Problems have the place in the text. */
export async function checkRoute(text: string, signal: AbortSignal): Promise<RouteCheck> {
  return await call<RouteCheck>(api("gate", "/routes/check"), {
    method: "POST",
    bytes: text,
    headers: JSON_TYPE,
    signal,
  });
}

/** The route was changed since it was read. */
export interface RouteConflict {
  /** Tag of the route as it is now; null if it was deleted. */
  etag: string | null;
  /** The route as it is now; null if it was deleted. */
  current: Settings | null;
}

/** Adds a route (`etag` null), or replaces the version of it that has a tag; resolves with a conflict if there is another one. */
export async function saveRoute(
  text: string,
  etag: string | null,
): Promise<RouteConflict | undefined> {
  try {
    const condition = etag === null ? { "if-none-match": "*" } : { "if-match": etag };
    const headers = { ...JSON_TYPE, ...condition };
    await send(api("gate", "/routes"), { method: "POST", bytes: text, headers });
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 412) throw error;
    const { route_etag: now = null, current = null } = error.details as {
      route_etag?: string | null;
      current?: Settings | null;
    };
    return { etag: now, current };
  }
}

/** Routes that are deleted unless the user undoes it, by name. */
export const leaving = signal<ReadonlySet<string>>(new Set());

/** Removes a route. */
export async function deleteRoute({ prefix, host, methods, variant }: Route): Promise<void> {
  const query = new URLSearchParams({ prefix });
  if (host !== undefined) query.set("host", host);
  if (methods !== undefined) query.set("methods", methods.join(","));
  if (variant !== undefined) query.set("variant", variant);
  await send(api("gate", `/routes?${query.toString()}`), { method: "DELETE" });
}

/** Path of the page of a new route; names have a slash. */
export const NEW_ROUTE = "/gateway/routes/new";

/** Path of an API key. */
export function keyPath(id: string): string {
  return `/admin/api-keys/${segment(id)}`;
}
