// State of a request that goes upstream on a route with a response cache.
import type { CacheKey, CacheMoment, CacheRecord } from "../shared-state/index.ts";

/** A pinned entry with its properties. */
export interface PinnedEntry {
  readonly entry: number;
  readonly record: CacheRecord & { readonly headBytes: number; readonly bodyBytes: number };
}

/** A request that goes upstream on a route with a cache. */
export interface CacheTicket {
  /** The key without a variant, in its own memory. */
  readonly key: CacheKey;
  /** The key without the caller's scope, for responses that anyone may get. */
  readonly publicKey: CacheKey;
  readonly moment: CacheMoment;
  /** Cache-Control of the request. */
  readonly directives: ReadonlyMap<string, string>;
  readonly sentAtMs: number;
  readonly ttlMs: number;
  readonly isAuthorized: boolean;
  readonly isPersonal: boolean;
  /** The stale response that is being revalidated; null without one. */
  stale: PinnedEntry | null;
  /** Validators of `stale` replace the conditions of the client. */
  revalidates: boolean;
  /** Others wait for this request. */
  leads: boolean;
}
