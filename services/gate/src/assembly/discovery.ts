// Service discovery of a configuration.
import type { Logger } from "@platform/kernel/log";
import { parseDiscovery } from "../config/discovery-address.ts";
import type { GateConfig } from "../config/document.ts";
import { applyOverlay, indexRoutes, type Overlay } from "../control/overlay.ts";
import { listServices } from "../resolve/resolve-route.ts";
import { Discovery } from "../source/discovery.ts";

/** Looks the services of the routes up; undefined without `discovery`. A source that is down does not stop the start. */
export async function openDiscovery(
  config: GateConfig,
  overlay: Overlay,
  log: Logger,
): Promise<Discovery | undefined> {
  const { discovery: text } = config;
  const address = text === undefined ? undefined : parseDiscovery(text);
  if (text === undefined || address === undefined) return undefined;
  const discovery = new Discovery({ address, text, log });
  const routes = applyOverlay(indexRoutes(config.routes), overlay);
  await discovery.prepare([...routes.values()].flatMap((route) => listServices(route)));
  return discovery;
}
