// The cache step: answers from the store, or lets the request fetch a response for it.
import {
  type ContentFilter,
  type HeadWriter,
  Known,
  Method,
  type ResponseDraft,
} from "@platform/http1";
import { PlatformError } from "@platform/kernel/errors";
import { type Directives, readSeconds } from "../../cache/cache-control.ts";
import type { CacheKeys } from "../../cache/cache-key.ts";
import type { ResponseCache } from "../../cache/response-cache.ts";
import { readHead, readValidators } from "../../cache/stored-answer.ts";
import { Flag, judgeUse } from "../../cache/store-rules.ts";
import type { CacheTicket, PinnedEntry } from "../../exchange/cache-ticket.ts";
import type { CompiledRoute, GateExchange, Step } from "../../exchange/exchange.ts";
import type { CacheFlights, CacheKey, RouteSpec, SharedCache } from "../../shared-state/index.ts";
import {
  hasBody,
  isConditional,
  isSafe,
  NO_DIRECTIVES,
  readDirectives,
  readScope,
  SAFE_METHODS,
} from "./cache-request.ts";
import { CredentialReader } from "../cache-credentials.ts";
import type { DetachedRequests } from "../copy/detached-requests.ts";
import type { StepParts } from "../step-parts.ts";

/** Longest wait for another request that fetches the same response. */
const FLIGHT_WAIT_MS = 5_000;

/** A request that may be answered from the store. */
interface Lookup {
  /** Cache-Control of the request. */
  readonly directives: Directives;
  /** The caller whose responses are kept apart; "" if all callers share them. */
  readonly scope: string;
  /** True if only responses that are meant for requests with credentials may be used. */
  readonly isAuthorized: boolean;
  /** True if only responses that are for all may be used: see {@link CacheCredentials}. */
  readonly isPersonal: boolean;
  /** First part of the keys. */
  readonly route: string;
  /** Hash of the key under which requests for the same response wait for each other. */
  readonly hash: number;
}

/** Caches the responses of a route; on one of several routes of a prefix, invalidates those that another one stores. */
export function createCacheStep(spec: RouteSpec, parts: StepParts): Step | undefined {
  if (spec.steps.cache !== undefined) return new CacheStep(spec, parts);
  const mayChange = spec.methods?.some((method) => !SAFE_METHODS.has(method)) ?? false;
  return mayChange ? createInvalidationStep(parts) : undefined;
}

class CacheStep implements Step {
  readonly #cache: ResponseCache;
  readonly #store: SharedCache;
  readonly #flights: CacheFlights;
  readonly #keys: CacheKeys;
  readonly #detached: DetachedRequests;
  readonly #routeKey: string;
  readonly #credentials: CredentialReader;
  readonly #ttlMs: number;
  readonly #hasHead: boolean;
  /** The route's own judge reads fields that the upstream sees, too. */
  readonly #isJudgedElsewhere: boolean;

  constructor(spec: RouteSpec, { cache }: StepParts) {
    const { ttlMs, methods, version } = spec.steps.cache!;
    this.#credentials = new CredentialReader(spec.steps.cache!, spec);
    this.#cache = cache.responses;
    this.#store = cache.store;
    this.#flights = cache.flights;
    this.#keys = cache.keys;
    this.#detached = cache.detached;
    this.#routeKey = version === undefined ? spec.key : `${spec.key} ${version}`;
    this.#ttlMs = ttlMs;
    this.#hasHead = methods.includes("HEAD") || methods.includes("GET");
    this.#isJudgedElsewhere = spec.auth.type === "forward";
  }

  run(exchange: GateExchange, route: CompiledRoute): boolean | Promise<boolean> {
    const { head, userData } = exchange;
    if (userData.detached !== null) {
      const scope = readScope(exchange);
      const { key: cookies, isPersonal } = this.#credentials.read(exchange);
      const name = this.#nameEntries(exchange, cookies);
      const key = this.#keys.build(exchange, name, scope)!;
      const lookup: Lookup = {
        directives: NO_DIRECTIVES,
        scope,
        isAuthorized: false,
        isPersonal,
        route: name,
        hash: key.hashA,
      };
      this.#begin(exchange, lookup, this.#find(exchange, key, lookup), true);
      return true;
    }
    const isRead = head.methodId === Method.GET || (head.methodId === Method.HEAD && this.#hasHead);
    if (!isSafe(exchange)) userData.changedResource = hashResource(exchange, this.#keys);
    if (!isRead || head.upgrade || hasBody(exchange)) return true;
    const directives = readDirectives(exchange);
    return this.#serve(exchange, route, directives, undefined);
  }

  /** The part of keys that tells routes apart, and requests that pass different guests. */
  #nameEntries({ userData }: GateExchange, cookies: string): string {
    const guests = userData.guests === null ? "" : ` ${userData.guests.cacheScope}`;
    return `${this.#routeKey}${cookies}${guests}`;
  }

  #find(
    exchange: GateExchange,
    key: CacheKey,
    { scope, isAuthorized, isPersonal, route }: Lookup,
  ): PinnedEntry | undefined {
    const needed = (isAuthorized ? Flag.ForAuthorized : 0) | (isPersonal ? Flag.Shared : 0);
    const pinned = this.#cache.find(exchange, key);
    if (pinned !== undefined && this.#admits(pinned, needed)) return pinned;
    if (scope === "") return undefined;
    const shared = this.#cache.find(exchange, this.#keys.build(exchange, route, "")!);
    return shared !== undefined && this.#admits(shared, Flag.Public | needed) ? shared : undefined;
  }

  #serve(
    exchange: GateExchange,
    route: CompiledRoute,
    directives: Directives,
    deadlineMs: number | undefined,
  ): boolean | Promise<boolean> {
    const scope = readScope(exchange);
    const { key: cookies, isPersonal } = this.#credentials.read(exchange);
    const name = this.#nameEntries(exchange, cookies);
    const key = this.#keys.build(exchange, name, scope);
    if (key === undefined) return true;
    const isAuthorized = this.#isAuthorized(exchange, scope);
    const hash = key.hashA;
    const lookup: Lookup = { directives, scope, isAuthorized, isPersonal, route: name, hash };
    const pinned = this.#find(exchange, key, lookup);
    if (pinned !== undefined) {
      const ageMs = this.#cache.readAgeMs(pinned);
      const use = judgeUse(pinned.record, ageMs, directives);
      if (use !== "stale") {
        this.#cache.answer(exchange, pinned, use === "fresh" ? "HIT" : "STALE");
        return false;
      }
      if (
        !isAuthorized &&
        !isPersonal &&
        this.#isUsableMeanwhile(pinned, directives) &&
        this.#revalidateDetached(exchange, route, lookup, pinned)
      ) {
        this.#cache.answer(exchange, pinned, "STALE");
        return false;
      }
    }
    if (directives.has("only-if-cached")) {
      if (pinned !== undefined) this.#store.unpin(pinned.entry);
      throw new PlatformError(
        "upstream_timeout",
        "The response is not stored, and the request allows nothing else.",
      );
    }
    return this.#fetch(exchange, route, lookup, pinned, deadlineMs);
  }

  /** Revalidates a response that the client gets now; false if the client's own request must do it. */
  #revalidateDetached(
    exchange: GateExchange,
    route: CompiledRoute,
    lookup: Lookup,
    stale: PinnedEntry,
  ): boolean {
    // A request without its client passes no guests.
    if (exchange.head.methodId !== Method.GET || exchange.userData.guests !== null) return false;
    const { hash } = lookup;
    // Another request revalidates it, or has just tried in vain.
    if (this.#flights.take(hash) !== "leader") return true;
    const land = (): void => this.#flights.land(hash, true);
    const stored = this.#findAgain(exchange, lookup);
    if (stored !== undefined) this.#store.unpin(stored.entry);
    // Another one has replaced it between this request's look and its flight.
    if (stored !== undefined && stored.entry !== stale.entry) {
      land();
      return true;
    }
    if (this.#detached.start(exchange, route, this, land)) return true;
    land();
    return false;
  }

  /** True if the response has all of these flags; otherwise it is no longer pinned. */
  #admits({ entry, record }: PinnedEntry, flags: number): boolean {
    if ((record.flags & flags) === flags) return true;
    this.#store.unpin(entry);
    return false;
  }

  #fetch(
    exchange: GateExchange,
    route: CompiledRoute,
    lookup: Lookup,
    stale: PinnedEntry | undefined,
    deadlineMs = performance.now() + FLIGHT_WAIT_MS,
  ): boolean | Promise<boolean> {
    const { head } = exchange;
    const { directives, isAuthorized, isPersonal, hash } = lookup;
    // Only a plain GET is sure to bring a response that others can use.
    const isPlain =
      head.methodId === Method.GET && (stale !== undefined || !isConditional(exchange));
    const isShared = isPlain && !isAuthorized && !isPersonal && !directives.has("no-store");
    const role = isShared ? this.#flights.take(hash) : "passes";
    if (role === "leader" && this.#answerLanded(exchange, lookup, stale)) return false;
    const waitMs = deadlineMs - performance.now();
    if (role === "waits" && waitMs > 0) {
      if (stale !== undefined && this.#isUsableMeanwhile(stale, directives)) {
        this.#cache.answer(exchange, stale, "STALE");
        return false;
      }
      if (stale !== undefined) this.#store.unpin(stale.entry);
      return this.#wait(exchange, route, lookup, deadlineMs);
    }
    this.#begin(exchange, lookup, stale, role === "leader");
    return true;
  }

  /** Answers with a response that another request has stored between this one's look and its flight, which ends. */
  #answerLanded(exchange: GateExchange, lookup: Lookup, stale: PinnedEntry | undefined): boolean {
    const stored = this.#findAgain(exchange, lookup);
    if (stored === undefined) return false;
    const ageMs = this.#cache.readAgeMs(stored);
    if (
      stored.entry === stale?.entry ||
      judgeUse(stored.record, ageMs, lookup.directives) !== "fresh"
    ) {
      this.#store.unpin(stored.entry);
      return false;
    }
    this.#flights.land(lookup.hash, true);
    if (stale !== undefined) this.#store.unpin(stale.entry);
    this.#cache.answer(exchange, stored, "HIT");
    return true;
  }

  /** Looks once more, after the memory of the keys has been used. */
  #findAgain(exchange: GateExchange, lookup: Lookup): PinnedEntry | undefined {
    const key = this.#keys.build(exchange, lookup.route, lookup.scope)!;
    return this.#find(exchange, key, lookup);
  }

  #begin(
    exchange: GateExchange,
    { directives, scope, isAuthorized, isPersonal, route }: Lookup,
    stale: PinnedEntry | undefined,
    leads: boolean,
  ): void {
    // Looking for variants has used the memory of the first one.
    const key = copyKey(this.#keys.build(exchange, route, scope)!);
    const hasValidator = stale !== undefined && this.#hasValidator(stale);
    const ticket: CacheTicket = {
      key,
      publicKey: scope === "" ? key : copyKey(this.#keys.build(exchange, route, "")!),
      moment: this.#store.readMoment(key.resourceHash),
      directives,
      sentAtMs: Date.now(),
      ttlMs: this.#ttlMs,
      isAuthorized,
      isPersonal,
      stale: stale ?? null,
      revalidates: hasValidator,
      leads,
    };
    exchange.userData.cacheTicket = ticket;
    exchange.userData.revalidates = hasValidator;
  }

  // If the one that fetches ends without a response, because its client left, one of those that wait takes its place.
  async #wait(
    exchange: GateExchange,
    route: CompiledRoute,
    { directives, hash }: Lookup,
    deadlineMs: number,
  ): Promise<boolean> {
    const { sequence } = exchange;
    await this.#flights.wait(hash, Math.max(1, deadlineMs - performance.now()));
    if (exchange.sequence !== sequence || exchange.aborted) return false;
    return this.#serve(exchange, route, directives, deadlineMs);
  }

  #isUsableMeanwhile({ entry, record }: PinnedEntry, directives: Directives): boolean {
    if ((record.flags & Flag.NoStale) !== 0) return false;
    // Demands of the request on the age go first (RFC 9111 section 5.2.1).
    for (const name of ["no-cache", "no-store", "min-fresh"])
      if (directives.has(name)) return false;
    const ageMs = this.#cache.readAgeMs({ entry, record });
    if (ageMs > (readSeconds(directives, "max-age") ?? Infinity) * 1_000) return false;
    return ageMs < record.lifetimeMs + record.staleWhileRevalidateMs;
  }

  #hasValidator(stale: PinnedEntry): boolean {
    const { etag, lastModified } = readValidators(readHead(this.#store, stale));
    return etag !== undefined || lastModified !== undefined;
  }

  #isAuthorized(exchange: GateExchange, scope: string): boolean {
    const { caller } = exchange.userData;
    if (this.#isJudgedElsewhere && scope === "") return true;
    // The key contains the user of a token; a session leaves Authorization to the upstream.
    const isOfToken = caller.kind === "user" && caller.session === undefined;
    if (isOfToken || caller.kind === "operator") return false;
    return exchange.head.fields.has(Known.Authorization);
  }

  onRequestHead(exchange: GateExchange, writer: HeadWriter): void {
    const { cacheTicket: ticket, revalidates } = exchange.userData;
    if (!revalidates || ticket?.stale === null || ticket === null) return;
    const { etag, lastModified } = readValidators(readHead(this.#store, ticket.stale));
    if (etag !== undefined) writer.field("If-None-Match", etag);
    if (lastModified !== undefined) writer.field("If-Modified-Since", lastModified);
  }

  filterResponse(exchange: GateExchange, draft: ResponseDraft): readonly ContentFilter[] {
    const { cacheTicket: ticket } = exchange.userData;
    if (ticket !== null) return this.#cache.receive(exchange, ticket, draft);
    invalidate(exchange, draft.status, this.#store);
    return [];
  }

  answerFailure(exchange: GateExchange): boolean {
    const { cacheTicket: ticket } = exchange.userData;
    return ticket !== null && this.#cache.answerAfterError(exchange, ticket);
  }

  finish(exchange: GateExchange): void {
    const { cacheTicket: ticket } = exchange.userData;
    if (ticket === null) return;
    exchange.userData.cacheTicket = null;
    this.#cache.close(ticket);
  }
}

function createInvalidationStep({ cache: { keys, store } }: StepParts): Step {
  return {
    run(exchange) {
      if (!isSafe(exchange)) exchange.userData.changedResource = hashResource(exchange, keys);
      return true;
    },
    onResponseHead(exchange, head) {
      invalidate(exchange, head.status, store);
    },
  };
}

function hashResource(exchange: GateExchange, keys: CacheKeys): number | null {
  return keys.build(exchange, "", "")?.resourceHash ?? null;
}

/** A successful unsafe request changes the resource (RFC 9111 section 4.4). */
function invalidate({ userData }: GateExchange, status: number, store: SharedCache): void {
  const { changedResource } = userData;
  if (changedResource === null || status < 200 || status >= 400) return;
  store.invalidate(changedResource);
}

function copyKey(key: CacheKey): CacheKey {
  return { ...key, bytes: Buffer.from(key.bytes) };
}
