// Judges a file descriptor limit by the gateway's configuration, without starting the gateway.
import { loadConfig } from "@platform/kernel/config";
import { gateDefinition } from "../config/document.ts";
import { checkLoaded, type GateSources } from "../config/load.ts";
import { findDescriptorShortage, type DescriptorShortage } from "./descriptors.ts";
import { countSharing, countWorkers } from "./worker-count.ts";

/**
 * Returns the shortage that the gateway would log at its start with this configuration and limit; undefined if there is
 * none. Throws ConfigError if the configuration is invalid.
 */
export function checkDescriptorLimit(
  sources: GateSources,
  limit: number | undefined,
): DescriptorShortage | undefined {
  const loaded = loadConfig(gateDefinition, sources);
  if (loaded.kind !== "run") return undefined;
  const { config } = checkLoaded(loaded);
  return findDescriptorShortage(config.max_connections, {
    limit,
    workers: countSharing(config, countWorkers(config)),
  });
}
