// IDs of routes in paths of the API.
import { createHash } from "node:crypto";
import type { RouteKey } from "../shared-state/index.ts";

const ID_CHARACTERS = 16;

/** The ID of a route in paths: stable, and without the characters of its prefix. */
export function makeRouteId(key: RouteKey): string {
  return createHash("sha256").update(key).digest("base64url").slice(0, ID_CHARACTERS);
}
