// Shared memory of one gateway process: sizes, allocation and clock.
import { randomInt } from "node:crypto";
import { AI_ACCOUNTS_BYTES } from "./ai-accounts.ts";
import { allocateFlights } from "./cache-flights.ts";
import type { CacheBuffers } from "./cache-memory.ts";
import { allocateCache } from "./cache-index.ts";
import { CONCURRENCY_INTS } from "./concurrency-rows.ts";
import { allocateLinkFigures } from "./link-figures.ts";
import { LINKS_MAX, LINK_STATE_INTS } from "./link-state.ts";
import { RATE_TABLE_BYTES } from "./rate-table.ts";
import { ROUTE_STATE_INTS } from "./route-state.ts";
import { TARGET_STATE_INTS } from "./target-state.ts";
import { TOKEN_WINDOWS_BYTES } from "./token-windows.ts";

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
 *     routes   Int32  [ROUTES_MAX][ROUTE_STATE_INTS]     round-robin index and tickets, by Atomics
 *     targets  Int32  [TARGETS_MAX][TARGET_STATE_INTS]   health, by Atomics
 *     active   Int32  [workers][TARGETS_MAX]            active exchanges, one writer per row
 *     concurrency  Int32  [workers][ROUTES_MAX][CONCURRENCY_INTS]   bounded concurrency, one writer per row
 *     links    Int32  [LINKS_MAX][LINK_STATE_INTS]       circuits, canary counts and weights, by Atomics
 *     figures  attempts, failures and response times of links; see LinkFigures
 *     rates    counts of rate-limited requests; see SharedRateTable
 *     cache    stored responses; see SharedCache
 *     flights  requests that fetch them; see CacheFlights
 *     accounts  spending of tenants at models; see AiAccounts
 *     tokens   tokens of AI requests by minute; see TokenWindows
 */
export interface SharedBuffers {
  workers: number;
  routes: SharedArrayBuffer;
  targets: SharedArrayBuffer;
  active: SharedArrayBuffer;
  concurrency: SharedArrayBuffer;
  links: SharedArrayBuffer;
  figures: SharedArrayBuffer;
  rates: SharedArrayBuffer;
  cache: CacheBuffers;
  flights: SharedArrayBuffer;
  accounts: SharedArrayBuffer;
  tokens: SharedArrayBuffer;
  /** Random seed of hashes in shared memory, unknown to clients. */
  seed: number;
  /** `readMonotonicMs()` at allocation; times in shared memory are relative to it. */
  startedMs: number;
}

/** Default size of the response cache. */
export const CACHE_BYTES_DEFAULT = 134_217_728;

/** Allocates the shared memory of a process with `workers` worker threads (1 … WORKERS_MAX). */
export function allocateSharedBuffers(
  workers: number,
  cacheBytes: number = CACHE_BYTES_DEFAULT,
): SharedBuffers {
  if (!Number.isInteger(workers) || workers < 1 || workers > WORKERS_MAX) {
    throw new RangeError(`workers is ${workers}, allowed range: 1 to ${WORKERS_MAX}`);
  }
  return {
    workers,
    routes: new SharedArrayBuffer(ROUTES_MAX * ROUTE_STATE_INTS * 4),
    targets: new SharedArrayBuffer(TARGETS_MAX * TARGET_STATE_INTS * 4),
    active: new SharedArrayBuffer(workers * TARGETS_MAX * 4),
    concurrency: new SharedArrayBuffer(workers * ROUTES_MAX * CONCURRENCY_INTS * 4),
    links: new SharedArrayBuffer(LINKS_MAX * LINK_STATE_INTS * 4),
    figures: allocateLinkFigures(),
    rates: new SharedArrayBuffer(RATE_TABLE_BYTES),
    cache: allocateCache(cacheBytes, workers),
    flights: allocateFlights(),
    accounts: new SharedArrayBuffer(AI_ACCOUNTS_BYTES),
    tokens: new SharedArrayBuffer(TOKEN_WINDOWS_BYTES),
    seed: randomInt(2 ** 32),
    startedMs: readMonotonicMs(),
  };
}

// On Bun each thread has an hrtime of its own; the origin is the wall clock when the thread began.
const hasSharedTime = process.versions["bun"] === undefined;

/** Milliseconds of a monotonic clock that is the same for all threads of the process. */
export function readMonotonicMs(): number {
  return hasSharedTime
    ? Number(process.hrtime.bigint() / 1_000_000n)
    : Math.floor(performance.timeOrigin + performance.now());
}
