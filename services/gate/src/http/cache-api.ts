// DELETE /api/v1/admin/cache: invalidation by path prefix and by tag.
import { setTimeout as delay } from "node:timers/promises";
import { PlatformError } from "@platform/kernel/errors";
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import * as z from "zod";
import { isTaggedWith, readPathOfKey } from "../cache/cache-key.ts";
import { normalizePrefix } from "../config/value.ts";
import type { SharedCache } from "../shared-state/index.ts";

const BUSY_TRIES = 20;
const BUSY_MS = 100;

const query = z
  .object({
    prefix: z.string({ error: "must be given once" }).min(1).optional(),
    tag: z.string({ error: "must be given once" }).min(1).max(1_024).optional(),
  })
  .refine(({ prefix, tag }) => (prefix === undefined) !== (tag === undefined), {
    path: ["prefix"],
    error: "give one of prefix and tag: DELETE /api/v1/admin/cache?prefix=/shop",
  });

/** Creates the endpoint that invalidates stored responses. */
export function createCacheRoutes({ cache }: { cache: SharedCache }): ApiRoute[] {
  return [
    defineRoute({
      tag: "Operation",
      method: "DELETE",
      path: "/api/v1/admin/cache",
      summary: "Invalidate stored responses by path prefix or by Cache-Tag",
      description:
        "The prefix matches by whole segments; `/` matches all. Applies to all workers at once, and to responses that are being received.",
      query,
      answerType: "application/json",
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
            ? createPrefixMatch(normalizePrefix(prefix ?? "/"))
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
  const below = prefix.endsWith("/") ? prefix : `${prefix}/`;
  return (key) => {
    const path = readPathOfKey(key);
    return path === prefix || path.startsWith(below);
  };
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
