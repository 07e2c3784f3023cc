// The shared memory of one gateway process: its sizes, its allocation, and the clock that its times count by.
import { ROUTE_STATE_INTS } from "./route-state.ts";
import { TARGET_STATE_INTS } from "./target-state.ts";

/**
 * Most routes at a time; a change that needs more is refused. Far beyond what fits into memory: cells that no route has
 * are address space without pages behind it.
 */
export const ROUTES_MAX = 1_048_576;

/** Most different upstreams at a time; a change that needs more is refused. As far beyond what fits into memory. */
export const TARGETS_MAX = 1_048_576;

/** Most worker threads. */
export const WORKERS_MAX = 256;

/**
 * What all workers of a process share. Only what decisions read; metrics have a block per worker.
 *
 *     routes   Int32  [ROUTES_MAX][ROUTE_STATE_INTS]     round-robin index, by Atomics
 *     targets  Int32  [TARGETS_MAX][TARGET_STATE_INTS]   health, by Atomics
 *     active   Int32  [workers][TARGETS_MAX]            exchanges under way, one writer per row
 */
export interface SharedBuffers {
  workers: number;
  routes: SharedArrayBuffer;
  targets: SharedArrayBuffer;
  active: SharedArrayBuffer;
  /** `readMonotonicMs()` at allocation; times in shared memory count from here. */
  startedMs: number;
}

/** Allocates the shared memory of a process with `workers` worker threads (1 … WORKERS_MAX). */
export function allocateSharedBuffers(workers: number): SharedBuffers {
  if (!Number.isInteger(workers) || workers < 1 || workers > WORKERS_MAX) {
    throw new RangeError(`workers is ${workers}, allowed are 1 to ${WORKERS_MAX}`);
  }
  return {
    workers,
    routes: new SharedArrayBuffer(ROUTES_MAX * ROUTE_STATE_INTS * 4),
    targets: new SharedArrayBuffer(TARGETS_MAX * TARGET_STATE_INTS * 4),
    active: new SharedArrayBuffer(workers * TARGETS_MAX * 4),
    startedMs: readMonotonicMs(),
  };
}

/** Milliseconds on a clock that never jumps and is the same for all threads of the process. */
export function readMonotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}
