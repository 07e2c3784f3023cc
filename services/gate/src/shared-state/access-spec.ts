// API keys, revoked users and the global policy for workers: plain data that changes without a change of routes.
import type { PolicyRule } from "@platform/kernel/route-rules";

export type { PolicyRule };

/** An API key of a tenant. The key itself is not stored. */
export interface ApiKeySpec {
  id: string;
  tenant: string;
  /** SHA-256 of the key in lower-case hex. */
  sha256: string;
  /** Requests per minute with this key on all routes. */
  rateLimitRpm?: number;
  /** Labels of the routes that the key opens; absent: all routes that admit its tenant. */
  routes?: readonly string[];
}

/** Request fields that carry a key; they are not forwarded on routes that require one. */
export const API_KEY_FIELDS: readonly string[] = ["X-API-Key", "apikey"];

/** Invalidates the tokens of a user that were issued up to a moment. */
export interface UserRevocation {
  /** Value of the claims `sub` or `username`. */
  user: string;
  /** Seconds since 1970. */
  revokedAt: number;
}

/** Sessions of browsers that have ended before their time: one by `sid`, or those of a user that began before. */
export interface EndedSessions {
  /** See `describeOidcClient`. */
  client: string;
  /** ID of the provider's session, or the gateway's own if the user has signed out here. */
  sid?: string | undefined;
  sub?: string | undefined;
  /** Seconds since 1970. */
  endedAt: number;
}

/** The rules for all routes. The first matching rule decides, then the rules of the route, then `default`. */
export interface PolicySpec {
  /** Rises with each reload; tokens of a lower version are stale. */
  version: number;
  /** Rises when an operator lowers the version, so that this policy still replaces all others; absent: 0. */
  generation?: number;
  /** Seconds since 1970; tokens without a version that were issued before are stale. */
  reloadedAt: number;
  default: "allow" | "deny";
  rules: readonly PolicyRule[];
}

/** A change of access. The first change of a worker contains everything. */
export interface AccessChange {
  keys?: readonly ApiKeySpec[];
  /** IDs of revoked keys. */
  removedKeys?: readonly string[];
  revokedUsers?: readonly UserRevocation[];
  policy?: PolicySpec;
  endedSessions?: readonly EndedSessions[];
}

/** Maximum number of entries of ended sessions; beyond it the oldest is dropped: it ends at its next renewal. */
export const ENDED_SESSIONS_MAX = 20_000;

/** Maximum number of revoked users; beyond it the oldest revocation is dropped. */
export const REVOKED_USERS_MAX = 10_000;

/** The policy before the first reload. */
export const POLICY_DEFAULT: PolicySpec = {
  version: 1,
  reloadedAt: 0,
  default: "allow",
  rules: [],
};
