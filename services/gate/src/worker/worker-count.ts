// The number of worker threads.
import { availableParallelism } from "node:os";
import type { Logger } from "@platform/kernel/log";
import type { GateConfig } from "../config/document.ts";

/** Systems on which several threads can share a listening port. */
const REUSE_PORT_PLATFORMS: ReadonlySet<string> = new Set(["linux", "freebsd", "aix", "sunos"]);

/** The configured number, or one where threads cannot share a port. */
export function countWorkers(config: GateConfig, log?: Logger): number {
  const wanted = config.workers === "auto" ? availableParallelism() : config.workers;
  if (wanted === 1 || REUSE_PORT_PLATFORMS.has(process.platform)) return wanted;
  if (config.workers !== "auto") {
    log?.warn("starting one worker: threads cannot share a port on this system", { wanted });
  }
  return 1;
}

/** The threads that share the process's file descriptors: the workers, and that of the admin listener. */
export function countSharing(config: GateConfig, workers: number): number {
  return config.admin_addr === undefined ? workers : workers + 1;
}
