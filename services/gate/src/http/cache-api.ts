// /api/v1/admin/cache: use of the cache, invalidation by path prefix and by tag.
import { setTimeout as delay } from "node:timers/promises";
import { PlatformError } from "@platform/kernel/errors";
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import { isTaggedWith, readPathOfKey } from "../cache/cache-key.ts";
import { normalizePrefix } from "../config/value.ts";
import type { GateMetrics } from "../telemetry/gate-metrics.ts";
import type { SharedCache } from "../shared-state/index.ts";

const BUSY_TRIES = 20;
const BUSY_MS = 100;

const query = z
  .object({
    prefix: z
      .string({ error: "must be given once" })
      .regex(/^\//, { error: 'expected a path that starts with "/"' })
      .optional(),
    tag: z.string({ error: "must be given once" }).min(1).max(1_024).optional(),
  })
  .refine(({ prefix, tag }) => (prefix === undefined) !== (tag === undefined), {
    path: ["prefix"],
    error: "give one of prefix and tag: DELETE /api/v1/admin/cache?prefix=/shop",
  });

/** Options of {@link createCacheRoutes}. */
interface CacheRoutesOptions {
  cache: SharedCache;
  metrics: GateMetrics;
}

/** Creates the endpoints that show the use of the cache, and invalidate stored responses. */
export function createCacheRoutes({ cache, metrics }: CacheRoutesOptions): ApiRoute[] {
  return [
    defineRoute({
      tag: "Operation",
      method: "GET",
      path: "/api/v1/admin/cache",
      summary: "Use of the response cache",
      description: "One cache serves all workers. Totals count since the gateway started.",
      answer: z.object({
        entries: z.int().describe("Stored responses"),
        bytes: z.int().describe("Memory in use"),
        bytes_max: z.int().describe("Size of the cache (`cache_size`)"),
        entry_bytes_max: z.int().describe("Largest response that is stored, with its header"),
        evicted_total: z.int().describe("Responses dropped because the cache was full"),
        hits_total: z.int().describe("Responses from the cache, fresh or stale"),
        lookups_total: z.int().describe("Responses of routes with a cache"),
      }),
      handle: () => {
        const { cacheHits, cacheLookups } = metrics.readTotals();
        return {
          entries: cache.entries,
          bytes: cache.bytes,
          bytes_max: cache.bytesMax,
          entry_bytes_max: cache.entryBytesMax,
          evicted_total: cache.evicted,
          hits_total: cacheHits,
          lookups_total: cacheLookups,
        };
      },
    }),
    defineRoute({
      tag: "Operation",
      method: "DELETE",
      path: "/api/v1/admin/cache",
      summary: "Invalidate stored responses by path prefix or by Cache-Tag",
      description:
        "The prefix matches by whole segments, with or without its percent-encoding; `/` matches all. Applies to all workers at once, and to responses that are being received.",
      query,
      answer: z.object({
        status: z.string(),
        entries_invalidated: z.int(),
        prefix: z.string().optional(),
        tag: z.string().optional(),
      }),
      problems: { 400: "Neither or both of prefix and tag are given" },
      handle: async (exchange) => {
        const { prefix, tag } = exchange.query;
        const matches =
          tag === undefined
            ? createPrefixMatch(prefix ?? "/")
            : (_key: Buffer, readTags: () => string) => isTaggedWith(readTags(), tag);
        const entries = await purge(cache, matches);
        return {
          status: "invalidated",
          entries_invalidated: entries,
          ...(prefix === undefined ? {} : { prefix }),
          ...(tag === undefined ? {} : { tag }),
        };
      },
    }),
  ];
}

function createPrefixMatch(prefix: string): (key: Buffer) => boolean {
  const isWithin = (path: string, outer: string): boolean =>
    path === outer || path.startsWith(outer.endsWith("/") ? outer : `${outer}/`);
  const encoded = normalizePrefix(prefix);
  // Stored paths are encoded; the query, from which the prefix comes, has been decoded.
  const bytes = Buffer.from(prefix).toString("latin1");
  return (key) => {
    const path = readPathOfKey(key);
    return isWithin(path, encoded) || isWithin(decodeBytes(path), bytes);
  };
}

function decodeBytes(path: string): string {
  return path.replace(/%([0-9A-F]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}

// A worker that dies within the store keeps it busy until its end has been noticed here.
async function purge(
  cache: SharedCache,
  matches: Parameters<SharedCache["purge"]>[0],
): Promise<number> {
  let removed = 0;
  for (let tries = 0; tries < BUSY_TRIES; tries++) {
    const outcome = cache.purge(matches);
    removed += outcome.removed;
    if (outcome.isWhole) return removed;
    await delay(BUSY_MS);
  }
  throw new PlatformError("unavailable", "the response cache is busy; try again");
}
