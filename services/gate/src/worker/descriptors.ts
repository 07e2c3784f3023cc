// Derives connection limits from the file descriptor limit: each client connection may need a second one to an upstream.
import type { Logger } from "@platform/kernel/log";
import { DESCRIPTORS_MIN } from "@platform/kernel/sockets";
import { LIMITS_DEFAULT, type LimitsSpec } from "../shared-state/index.ts";

/** The file descriptors that the workers of a process share. */
export interface DescriptorShare {
  /** Descriptor limit of the process; undefined if the system does not report it. */
  limit: number | undefined;
  workers: number;
}

/** Reserved for files, the control plane, DNS lookups and the runtime. */
const PROCESS_DESCRIPTORS = 64;
const WORKER_DESCRIPTORS = 16;
/** Divisor: at most this fraction of a worker's connections is reserved for 503 responses. */
const SHED_SHARE = 8;

/** Connection limits of one worker. */
export type ConnectionPlan = Pick<
  LimitsSpec,
  "connectionsMax" | "shedConnectionsMax" | "upstreamsMax"
>;

/**
 * Computes the limits of one worker: `connectionsMax` if the descriptor limit allows it, otherwise as many connections as
 * can each have an upstream connection, with some left for 503 responses and probes.
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

/** A descriptor limit that is too low for `max_connections`. */
export interface DescriptorShortage {
  limit: number;
  needed: number;
  workers: number;
  connectionsMax: number;
  /** Connections of a worker that are accepted nevertheless. */
  connectionsAccepted: number;
  /** True if the operator has chosen the number of connections, or the limit is low for any service. */
  isFault: boolean;
}

/** Compares the descriptor limit with `max_connections`; undefined if it is high enough or unknown. */
export function findDescriptorShortage(
  connectionsMax: number,
  share: DescriptorShare,
): DescriptorShortage | undefined {
  const { limit, workers } = share;
  const connectionsAccepted = planConnections(connectionsMax, share).connectionsMax;
  if (limit === undefined || connectionsAccepted === connectionsMax) return undefined;
  return {
    limit,
    needed: countNeeded(connectionsMax, workers),
    workers,
    connectionsMax,
    connectionsAccepted,
    isFault: limit < DESCRIPTORS_MIN || connectionsMax !== LIMITS_DEFAULT.connectionsMax,
  };
}

/** Logs a shortage: as a warning if it is a fault, otherwise for information. */
export function warnOfDescriptorLimit(
  connectionsMax: number,
  share: DescriptorShare,
  log: Logger,
): void {
  const shortage = findDescriptorShortage(connectionsMax, share);
  if (shortage === undefined) return;
  const { limit, needed, workers, isFault } = shortage;
  log[isFault ? "warn" : "info"]("the file descriptor limit is too low for max_connections", {
    limit,
    needed,
    workers,
    max_connections: connectionsMax,
    connections_accepted: shortage.connectionsAccepted,
    remedy: "raise the limit (ulimit -n, LimitNOFILE=) or lower max_connections or workers",
  });
}

function countNeeded(connectionsMax: number, workers: number): number {
  const perWorker = WORKER_DESCRIPTORS + 2 * connectionsMax + LIMITS_DEFAULT.shedConnectionsMax;
  return PROCESS_DESCRIPTORS + workers * perWorker;
}
