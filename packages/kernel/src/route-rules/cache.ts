// Fields of a route that control the response cache.
import { z } from "zod";
import { unset, wholeNumber, yesNo } from "./value.ts";

const TTL_SECONDS_MAX = 31_536_000;
const COOKIES_MAX = 32;
/** Characters of a cookie's name (RFC 6265 section 4.1.1: a token). */
const COOKIE_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;

const cookieNames = () =>
  unset(
    z
      .array(z.string().regex(COOKIE_NAME, { error: "expected the name of a cookie" }))
      .max(COOKIES_MAX),
  );

/** Fields of {@link CacheFields} with their schemas. */
export const cacheFields = {
  cache_ttl_seconds: unset(wholeNumber(1, TTL_SECONDS_MAX)).meta({
    description:
      "store responses (RFC 9111) and use them for this time, in seconds, unless the upstream states another; default: no cache",
  }),
  cache_methods: unset(z.array(z.enum(["GET", "HEAD"]))).meta({
    description:
      "methods that are answered from the cache; default: GET and HEAD; responses to GET are stored, and also answer HEAD",
  }),
  cache_key_cookies: cookieNames().meta({
    description:
      "cookies whose values select the response: requests with equal values share it; a value that identifies a user keeps responses apart, but anyone who has it gets them",
  }),
  cache_ignore_cookies: cookieNames().meta({
    description:
      "cookies that do not matter to the responses, such as those of statistics; `*` at the end stands for any rest; if one does matter, a user gets the response of another",
  }),
  cache_with_cookies: yesNo().meta({
    description:
      "responses are the same whatever the cookies of a request; by default requests with other cookies than the above, or with credentials that reach the upstream, get and store only responses that are for all by `public`, `s-maxage` or CDN-Cache-Control",
  }),
};

/** Validated {@link cacheFields}. */
export interface CacheFields {
  readonly cache_ttl_seconds?: number;
  readonly cache_methods?: readonly ("GET" | "HEAD")[];
  readonly cache_key_cookies?: readonly string[];
  readonly cache_ignore_cookies?: readonly string[];
  readonly cache_with_cookies?: boolean;
}

const NEEDS_TTL = [
  "cache_methods",
  "cache_key_cookies",
  "cache_ignore_cookies",
  "cache_with_cookies",
] as const;

/** Reports cache settings of a route that has no upstream, and methods without a time to live. */
export function checkCacheFields(
  route: CacheFields,
  origin: string | undefined,
  context: z.RefinementCtx,
): void {
  const { cache_ttl_seconds: ttl, cache_methods: methods } = route;
  for (const key of NEEDS_TTL) {
    if (ttl !== undefined || route[key] === undefined || route[key] === false) continue;
    context.addIssue({ code: "custom", path: [key], message: "requires cache_ttl_seconds" });
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
