// Shared memory of one gateway process: sizes, allocation and clock.
import { ROUTE_STATE_INTS } from "./route-state.ts";
import { TARGET_STATE_INTS } from "./target-state.ts";

/**
 * Maximum number of routes; a change that needs more is refused. More than fit in memory: unused slots occupy address
 * space but no pages.
 */
export const ROUTES_MAX = 1_048_576;

/** Maximum number of distinct upstreams; a change that needs more is refused. Also more than fit in memory. */
export const TARGETS_MAX = 1_048_576;

/** Maximum number of worker threads. */
export const WORKERS_MAX = 256;

/**
 * Memory shared by all workers of a process for routing decisions; metrics are in one block per worker.
 *
 *     routes   Int32  [ROUTES_MAX][ROUTE_STATE_INTS]     round-robin index, by Atomics
 *     targets  Int32  [TARGETS_MAX][TARGET_STATE_INTS]   health, by Atomics
 *     active   Int32  [workers][TARGETS_MAX]            active exchanges, one writer per row
 */
export interface SharedBuffers {
  workers: number;
  routes: SharedArrayBuffer;
  targets: SharedArrayBuffer;
  active: SharedArrayBuffer;
  /** `readMonotonicMs()` at allocation; times in shared memory are relative to it. */
  startedMs: number;
}

/** Allocates the shared memory of a process with `workers` worker threads (1 … WORKERS_MAX). */
export function allocateSharedBuffers(workers: number): SharedBuffers {
  if (!Number.isInteger(workers) || workers < 1 || workers > WORKERS_MAX) {
    throw new RangeError(`workers is ${workers}, allowed range: 1 to ${WORKERS_MAX}`);
  }
  return {
    workers,
    routes: new SharedArrayBuffer(ROUTES_MAX * ROUTE_STATE_INTS * 4),
    targets: new SharedArrayBuffer(TARGETS_MAX * TARGET_STATE_INTS * 4),
    active: new SharedArrayBuffer(workers * TARGETS_MAX * 4),
    startedMs: readMonotonicMs(),
  };
}

/** Milliseconds of a monotonic clock that is the same for all threads of the process. */
export function readMonotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}
