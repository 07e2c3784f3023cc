// Fields of a route that control the response cache.
import * as z from "zod";
import { unset, wholeNumber } from "./value.ts";

const TTL_SECONDS_MAX = 31_536_000;

/** Fields of {@link RouteCacheFields} with their schemas. */
export const routeCacheFields = {
  cache_ttl_seconds: unset(wholeNumber(1, TTL_SECONDS_MAX)).meta({
    description:
      "store responses (RFC 9111) and use them for this time, in seconds, unless the upstream states another; default: no cache",
  }),
  cache_methods: unset(z.array(z.enum(["GET", "HEAD"]))).meta({
    description:
      "methods that are answered from the cache; default: GET and HEAD; responses to GET are stored, and also answer HEAD",
  }),
};

/** Validated {@link routeCacheFields}. */
export interface RouteCacheFields {
  readonly cache_ttl_seconds?: number;
  readonly cache_methods?: readonly ("GET" | "HEAD")[];
}

/** Reports cache settings of a route that has no upstream, and methods without a time to live. */
export function checkCacheFields(
  route: RouteCacheFields,
  origin: string | undefined,
  context: z.RefinementCtx,
): void {
  const { cache_ttl_seconds: ttl, cache_methods: methods } = route;
  if (methods !== undefined && ttl === undefined) {
    context.addIssue({
      code: "custom",
      path: ["cache_methods"],
      message: "requires cache_ttl_seconds",
    });
  }
  if (methods?.includes("GET") === false) {
    context.addIssue({
      code: "custom",
      path: ["cache_methods"],
      message: "must contain GET: only its responses are stored, and answer HEAD, too",
    });
  }
  if (ttl !== undefined && origin !== undefined && !origin.startsWith("target")) {
    context.addIssue({
      code: "custom",
      path: ["cache_ttl_seconds"],
      message: `is not allowed with ${origin}, which is no upstream`,
    });
  }
}
