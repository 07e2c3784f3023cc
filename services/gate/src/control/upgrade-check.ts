// Findings after an upgrade for the operator, read from the files without the running gateway.
import { loadConfig } from "@platform/kernel/config";
import { gateDefinition } from "../config/document.ts";
import { checkLoaded, type GateSources } from "../config/load.ts";
import { readRouteDefaults } from "./globals.ts";
import { listUnlimited, type UnlimitedRoute } from "./limited-routes.ts";
import { createOverlayFile, getOverlayPath } from "./overlay-file.ts";

/**
 * Routes of the API that name something which only the operator can name: users set them before such routes were limited.
 * Throws ConfigError if the configuration is invalid, and an Error that names the overlay if it is not usable.
 */
export async function findUnlimitedRoutes(sources: GateSources): Promise<UnlimitedRoute[]> {
  const loaded = loadConfig(gateDefinition, sources);
  if (loaded.kind !== "run") return [];
  const { config, path } = checkLoaded(loaded);
  const overlay = await createOverlayFile(getOverlayPath(path)).read();
  return listUnlimited(overlay, readRouteDefaults(config).confinement);
}
