// How many client connections the file descriptors of the process allow: each may need a second one to an upstream.
import type { Logger } from "@platform/kernel/log";
import { LIMITS_DEFAULT, type LimitsSpec } from "../shared-state/index.ts";

/** What the workers of a process share. */
export interface DescriptorShare {
  /** Descriptors that the process may have; undefined where the system does not report it. */
  limit: number | undefined;
  workers: number;
}

/** For files, the control plane, name lookups and what the runtime itself opens. */
const PROCESS_DESCRIPTORS = 64;
const WORKER_DESCRIPTORS = 16;
/** Of a worker's connections, what may be spent on telling clients that there are too many. */
const SHED_SHARE = 8;

/** Connections of one worker. */
export type ConnectionPlan = Pick<
  LimitsSpec,
  "connectionsMax" | "shedConnectionsMax" | "upstreamsMax"
>;

/**
 * The bounds of one worker: `connectionsMax` where the limit allows it, else as many that each can have an upstream
 * connection as well and that some are left for 503 answers and probes.
 */
export function planConnections(
  connectionsMax: number,
  { limit, workers }: DescriptorShare,
): ConnectionPlan {
  const { shedConnectionsMax, upstreamsMax } = LIMITS_DEFAULT;
  if (limit === undefined) return { connectionsMax, shedConnectionsMax, upstreamsMax };
  const free = Math.floor((limit - PROCESS_DESCRIPTORS) / workers) - WORKER_DESCRIPTORS;
  if (limit >= countNeeded(connectionsMax, workers)) {
    return {
      connectionsMax,
      shedConnectionsMax,
      upstreamsMax: free - connectionsMax - shedConnectionsMax,
    };
  }
  const pairs = Math.max(2, Math.floor(free / 2));
  const shed = Math.min(shedConnectionsMax, Math.max(1, Math.floor(pairs / SHED_SHARE)));
  const accepted = Math.min(connectionsMax, pairs - shed);
  return {
    connectionsMax: accepted,
    shedConnectionsMax: shed,
    upstreamsMax: 2 * pairs - accepted - shed,
  };
}

/** Logs a warning if the limit does not allow what is configured. */
export function warnOfDescriptorLimit(
  connectionsMax: number,
  share: DescriptorShare,
  log: Logger,
): void {
  const { limit, workers } = share;
  const accepted = planConnections(connectionsMax, share).connectionsMax;
  if (limit === undefined || accepted === connectionsMax) return;
  log.warn("the file descriptor limit is too low for max_connections", {
    limit,
    needed: countNeeded(connectionsMax, workers),
    workers,
    max_connections: connectionsMax,
    connections_accepted: accepted,
    remedy: "raise the limit (ulimit -n, LimitNOFILE=) or lower max_connections or workers",
  });
}

function countNeeded(connectionsMax: number, workers: number): number {
  const perWorker = WORKER_DESCRIPTORS + 2 * connectionsMax + LIMITS_DEFAULT.shedConnectionsMax;
  return PROCESS_DESCRIPTORS + workers * perWorker;
}
