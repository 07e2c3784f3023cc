// Routes as the gateway's API lists them.
import { call, segment, send } from "../api/api.ts";
import { api } from "../session/session.ts";

/** State of a target. */
export interface Target {
  url: string;
  active: number;
  ejected: boolean;
  /** Absent without a circuit breaker. */
  circuit?: "closed" | "open" | "half_open";
}

/** A route; other members are its settings. */
export interface Route {
  prefix: string;
  host?: string;
  methods?: string[];
  auth?: { type: string; required_scope?: string };
  status: { source: string; targets: Target[] };
  [setting: string]: unknown;
}

/** Name of a route: host and prefix, and its methods if it has some. */
export function nameOf({ host = "", prefix, methods }: Route): string {
  return host + prefix + (methods === undefined ? "" : ` ${methods.join(",")}`);
}

/** Path of a route's page. */
export function routePath(route: Route, tab = ""): string {
  return `/gateway/routes/${encodeURIComponent(nameOf(route))}${tab === "" ? "" : `/${tab}`}`;
}

/** All routes. */
export async function loadRoutes(): Promise<Route[]> {
  return await call<Route[]>(api("gate", "/routes"));
}

/** The settings of a route without its state, as its configuration has them. */
export function settingsOf(route: Route): Record<string, unknown> {
  const { status: _state, ...settings } = route;
  return settings;
}

/** Registers a route, or replaces the one with its prefix and host. */
export async function saveRoute(settings: unknown): Promise<void> {
  await send(api("gate", "/routes"), { method: "POST", json: settings });
}

/** Removes a route. */
export async function deleteRoute({ prefix, host, methods }: Route): Promise<void> {
  const query = new URLSearchParams({ prefix });
  if (host !== undefined) query.set("host", host);
  if (methods !== undefined) query.set("methods", methods.join(","));
  await send(api("gate", `/routes?${query.toString()}`), { method: "DELETE" });
}

/** Path of an API key. */
export function keyPath(id: string): string {
  return `/admin/api-keys/${segment(id)}`;
}
