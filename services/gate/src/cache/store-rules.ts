// The rules of RFC 9111 for a shared cache: which responses are stored, how old and how fresh they are.
import { type Directives, parseDirectives, readSeconds, SECONDS_MAX } from "./cache-control.ts";
import { parseHttpDate } from "./http-date.ts";
import { parseTargeted } from "./targeted-control.ts";

/** Statuses that are stored with the route's time to live if the upstream states none (RFC 9110 section 15.1). */
const DEFAULT_STATUSES: ReadonlySet<number> = new Set([200, 203, 204, 300, 301, 308, 404, 410]);

/**
 * Statuses that are about the conditions and the range of one request, which are no part of a key: other requests would get
 * them, whatever their Cache-Control says.
 */
const CONDITIONAL_STATUSES: ReadonlySet<number> = new Set([206, 304, 412, 416]);
/** Statuses of RFC 9110 whose rules for caches are followed here: with must-understand, no other one is stored. */
const UNDERSTOOD_STATUSES: ReadonlySet<number> = new Set([
  200, 201, 202, 203, 204, 205, 300, 301, 302, 303, 305, 307, 308, 400, 401, 402, 403, 404, 405,
  406, 407, 408, 409, 410, 411, 413, 414, 415, 417, 421, 422, 426, 500, 501, 502, 503, 504, 505,
]);
/** Members of Vary that no other request is known to match; the gateway writes the fields itself. */
const UNSELECTABLE = /(?:^|[\s,])(?:\*|x-forwarded-for|forwarded)(?:$|[\s,])/i;

/** Properties of a stored response. */
export const Flag = {
  /** It must be revalidated before each use. */
  RevalidateAlways: 1,
  /** It must not be used while stale. */
  NoStale: 2,
  /** Requests with an Authorization that the upstream judges may get it. */
  ForAuthorized: 4,
  /** Any caller may get it. */
  Public: 8,
  /** Not a response: the names of the request fields that select one. */
  Vary: 16,
  /** Requests with cookies or other credentials may get it: the upstream says that it is for all. */
  Shared: 32,
} as const;

/** A response that a cache may store. */
export interface StorableHead {
  readonly status: number;
  /** The joined values of a field; `undefined` if absent. */
  get(name: string): string | undefined;
}

/** Properties of the request that decide about storing. */
export interface StoringRequest {
  readonly directives: Directives;
  /** The upstream judges an Authorization field, or its like. */
  readonly isAuthorized: boolean;
  /** It has cookies or other credentials for the upstream that no key contains. */
  readonly isPersonal: boolean;
  /** Time to live if the upstream states none. */
  readonly ttlMs: number;
  /** When it was sent and answered, by the wall clock. */
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
}

/** Lifetime of a response. */
export interface Lifetime {
  readonly flags: number;
  readonly initialAgeMs: number;
  readonly lifetimeMs: number;
  readonly staleWhileRevalidateMs: number;
  readonly staleIfErrorMs: number;
}

/** The lifetime of a response to GET; `undefined` if it must not be stored. */
export function judgeResponse(head: StorableHead, request: StoringRequest): Lifetime | undefined {
  const { status } = head;
  const targeted = parseTargeted(head.get("cdn-cache-control"));
  const directives = targeted ?? parseDirectives(head.get("cache-control"));
  if (status < 200 || CONDITIONAL_STATUSES.has(status)) return undefined;
  if (request.directives.has("no-store")) return undefined;
  const mustUnderstand = directives.has("must-understand");
  if (mustUnderstand && !UNDERSTOOD_STATUSES.has(status)) return undefined;
  if (directives.has("no-store") && !mustUnderstand) return undefined;
  if (directives.has("private") || head.get("set-cookie") !== undefined) return undefined;
  if (UNSELECTABLE.test(head.get("vary") ?? "")) return undefined;
  if (/^text\/event-stream/i.test(head.get("content-type") ?? "")) return undefined;
  const sharedAge = readSeconds(directives, "s-maxage");
  const isForAuthorized =
    directives.has("public") || sharedAge !== undefined || directives.has("must-revalidate");
  if (request.isAuthorized && !isForAuthorized && targeted === undefined) return undefined;
  const isShared = directives.has("public") || sharedAge !== undefined || targeted !== undefined;
  if (request.isPersonal && !isShared) return undefined;
  const expires = targeted === undefined ? head.get("expires") : undefined;
  const lifetimeMs = readLifetimeMs(head, expires, directives, sharedAge, request);
  if (lifetimeMs === undefined) return undefined;
  const isRevalidated = directives.has("no-cache");
  const hasValidator = head.get("etag") !== undefined || head.get("last-modified") !== undefined;
  const staleWhileRevalidateMs = (readSeconds(directives, "stale-while-revalidate") ?? 0) * 1_000;
  const staleIfErrorMs = (readSeconds(directives, "stale-if-error") ?? 0) * 1_000;
  const isUsable = !isRevalidated && lifetimeMs + staleWhileRevalidateMs + staleIfErrorMs > 0;
  if (!isUsable && !hasValidator) return undefined;
  const isNeverStale =
    isRevalidated ||
    sharedAge !== undefined ||
    directives.has("must-revalidate") ||
    directives.has("proxy-revalidate");
  return {
    flags:
      (isRevalidated ? Flag.RevalidateAlways : 0) |
      (isNeverStale ? Flag.NoStale : 0) |
      (isForAuthorized || targeted !== undefined ? Flag.ForAuthorized : 0) |
      (isShared ? Flag.Shared : 0) |
      (directives.has("public") ? Flag.Public : 0),
    initialAgeMs: readInitialAgeMs(head, request),
    lifetimeMs,
    staleWhileRevalidateMs,
    staleIfErrorMs,
  };
}

/** A time in an HTTP date, in ms since 1970; `undefined` if absent, 0 if invalid. */
export function readDateMs(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  return parseHttpDate(value.trim(), Date.now()) ?? 0;
}

// RFC 9111 section 4.2.1.
function readLifetimeMs(
  head: StorableHead,
  expires: string | undefined,
  directives: Directives,
  sharedAge: number | undefined,
  { ttlMs, answeredAtMs }: StoringRequest,
): number | undefined {
  const seconds = sharedAge ?? readSeconds(directives, "max-age");
  if (seconds !== undefined) return seconds * 1_000;
  const expiresMs = readDateMs(expires);
  if (expiresMs !== undefined) {
    // Without a valid Date, it is the time at which the response arrived (RFC 9110 section 6.6.1).
    const dateMs = readDateMs(head.get("date")) || answeredAtMs;
    return Math.max(0, expiresMs - dateMs);
  }
  return DEFAULT_STATUSES.has(head.status) || directives.has("public") ? ttlMs : undefined;
}

// RFC 9111 section 4.2.3.
function readInitialAgeMs(head: StorableHead, request: StoringRequest): number {
  const { sentAtMs, answeredAtMs } = request;
  const dateMs = readDateMs(head.get("date")) || answeredAtMs;
  const apparentMs = Math.max(0, answeredAtMs - dateMs);
  const [first = ""] = (head.get("age") ?? "").split(",");
  const ageMs = /^\s*\d+\s*$/.test(first) ? Math.min(Number(first), SECONDS_MAX) * 1_000 : 0;
  return Math.max(apparentMs, ageMs + answeredAtMs - sentAtMs);
}

/** Usability of a stored response for a request. */
export type Use = "fresh" | "stale-allowed" | "stale";

/** Judges a stored response (RFC 9111 sections 4.2 and 5.2.1); `ageMs` is its current age. */
export function judgeUse(
  { flags, lifetimeMs }: Pick<Lifetime, "flags" | "lifetimeMs">,
  ageMs: number,
  request: Directives,
): Use {
  if ((flags & Flag.RevalidateAlways) !== 0) return "stale";
  if (request.size === 0) return ageMs < lifetimeMs ? "fresh" : "stale";
  if (request.has("no-cache")) return "stale";
  const maxAge = readSeconds(request, "max-age");
  if (maxAge !== undefined && ageMs > maxAge * 1_000) return "stale";
  const minFresh = readSeconds(request, "min-fresh") ?? 0;
  if (ageMs + minFresh * 1_000 < lifetimeMs) return "fresh";
  const maxStale = request.get("max-stale");
  if (minFresh > 0 || maxStale === undefined || (flags & Flag.NoStale) !== 0) return "stale";
  const staleMs = ageMs - lifetimeMs;
  const allowedMs = maxStale === "" ? Infinity : (readSeconds(request, "max-stale") ?? 0) * 1_000;
  return staleMs <= allowedMs ? "stale-allowed" : "stale";
}
