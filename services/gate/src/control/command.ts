// The commands `validate` and `overlay`.
import { createLogger } from "@platform/kernel/log";
import { toLiveSecret } from "@platform/kernel/secrets";
import type { LoadedGate } from "../config/load.ts";
import { listGuestReferences } from "../config/route-middleware.ts";
import { getStateFolder } from "../config/state-folder.ts";
import { makeRouteLabel } from "../shared-state/index.ts";
import { readRegisteredNames } from "./middleware-store.ts";
import { buildState } from "./gate-state.ts";
import { buildGlobals } from "./globals.ts";
import { ListenerCertificate } from "./listener-certificate.ts";
import { isEmptyOverlay } from "./overlay.ts";
import { NetworkLists } from "../resolve/network-lists.ts";
import { createOverlayFile, getOverlayPath, removeOverlay } from "./overlay-file.ts";

/** Validates configuration, certificate files and overlay like a start. Throws the same errors as a start. */
export async function describeConfiguration(loaded: LoadedGate): Promise<string> {
  const overlay = await createOverlayFile(getOverlayPath(loaded.path)).read();
  const context = {
    control: { socketPath: "", secret: "" },
    hasConsole: false,
    console: undefined,
    internalRoutes: [],
    configPath: loaded.path,
    descriptors: { limit: undefined, workers: 1 },
    certificate: new ListenerCertificate(createLogger({ service: "gate", level: "error" })),
    followToken: (_name: string, value: string) => toLiveSecret(value),
  };
  const state = buildState(loaded.config, overlay, {
    buildGlobals: (config, logs) => buildGlobals(config, context, logs),
    networks: new NetworkLists(),
    // The addresses of services are those of the running gateway.
    findService: loaded.config.discovery === undefined ? undefined : () => [],
  });
  const file = loaded.hasFile ? loaded.path : `${loaded.path} (does not exist, which is allowed)`;
  const changes = isEmptyOverlay(overlay)
    ? ""
    : `, ${overlay.upserts.size} set and ${overlay.tombstones.size} removed through the API`;
  const count = state.routes.size === 1 ? "1 route" : `${state.routes.size} routes`;
  const isRegistered = await readRegisteredNames(
    getStateFolder(loaded.config.data_dir, loaded.path),
  );
  const missing = [...state.routes.values()].flatMap((route) =>
    listGuestReferences(route)
      .filter((reference) => !isRegistered(reference))
      .map(
        (reference) =>
          `route ${makeRouteLabel(route.host, route.prefix)}: the middleware ${reference} is not registered; requests get 502 until it is\n`,
      ),
  );
  return `${missing.join("")}${file}: ok, ${count}${changes}\n`;
}

/** Returns the overlay of a configuration as JSON. */
export async function describeOverlay(configPath: string): Promise<string> {
  const path = getOverlayPath(configPath);
  const overlay = await createOverlayFile(path).read();
  const shown = {
    path,
    set: [...overlay.upserts.values()],
    removed: [...overlay.tombstones.values()],
  };
  return `${JSON.stringify(shown, null, 2)}\n`;
}

/** Removes the overlay of a configuration, even if it cannot be read. */
export async function clearOverlay(configPath: string): Promise<string> {
  const path = getOverlayPath(configPath);
  await removeOverlay(path);
  return `${path} removed; a running gateway applies this on its next reload (SIGHUP)\n`;
}
