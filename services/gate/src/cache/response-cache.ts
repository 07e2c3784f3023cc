// The response cache of one worker: finds, stores and refreshes responses.
import { type ContentFilter, Method, prepareAnswer, type ResponseDraft } from "@platform/http1";
import type { CacheTicket, PinnedEntry } from "../exchange/cache-ticket.ts";
import type { GateExchange } from "../exchange/exchange.ts";
import {
  type CacheFlights,
  type CacheKey,
  type MetricBlock,
  type SharedCache,
} from "../shared-state/index.ts";
import type { CacheKeys } from "./cache-key.ts";
import { ResponseWriter } from "./response-writer.ts";
import { answerFromStore, readHead } from "./stored-answer.ts";
import { Flag, judgeResponse, type Lifetime, type StorableHead } from "./store-rules.ts";

const NO_BYTES = Buffer.alloc(0);
/** Fields of a response that are not stored: they belong to one message, or are computed for each answer. */
const UNSTORED = /^(?:age|x-cache|connection|keep-alive|trailer|proxy-.*|warning)$/i;
/** Fields that a 304 does not change (RFC 9111 section 3.2). */
const FIXED =
  /^(?:content-length|content-encoding|content-type|content-range|transfer-encoding|etag)$/i;
/** The response to a request without a client. */
const DISCARDED = prepareAnswer({ status: 204 });
const VARY_NAMES_MAX = 16;

/** Parts of {@link ResponseCache}. */
export interface ResponseCacheParts {
  readonly store: SharedCache;
  readonly flights: CacheFlights;
  readonly keys: CacheKeys;
  readonly block: MetricBlock;
  /** Wall clock in ms. */
  readonly readTimeMs: () => number;
}

/** The response cache of one worker. */
export class ResponseCache {
  readonly #parts: ResponseCacheParts;
  readonly #hitsAt: number;
  readonly #missesAt: number;
  readonly #staleAt: number;
  readonly #storedAt: number;
  readonly #revalidatedAt: number;

  constructor(parts: ResponseCacheParts) {
    this.#parts = parts;
    this.#hitsAt = parts.block.findCounter("cacheHits");
    this.#missesAt = parts.block.findCounter("cacheMisses");
    this.#staleAt = parts.block.findCounter("cacheStale");
    this.#storedAt = parts.block.findCounter("cacheStored");
    this.#revalidatedAt = parts.block.findCounter("cacheRevalidated");
  }

  /** The stored response of a request, pinned; the variant that its fields select. */
  find(exchange: GateExchange, key: CacheKey): PinnedEntry | undefined {
    const { store, keys } = this.#parts;
    let entry = store.find(key);
    if (entry === -1) return undefined;
    let record = store.read(entry);
    if ((record.flags & Flag.Vary) !== 0) {
      const names = readHead(store, { entry, record });
      store.unpin(entry);
      const variant = keys.select(key, exchange.head, names);
      entry = variant === undefined ? -1 : store.find(variant);
      if (entry === -1) return undefined;
      record = store.read(entry);
    }
    return { entry, record };
  }

  /** The current age of a stored response in ms. */
  readAgeMs({ record }: PinnedEntry): number {
    return record.initialAgeMs + Math.max(0, this.#parts.readTimeMs() - record.responseAtMs);
  }

  /** Answers with a stored response, and unpins it. */
  answer(exchange: GateExchange, pinned: PinnedEntry, status: "HIT" | "STALE"): void {
    const { store, readTimeMs } = this.#parts;
    if (exchange.userData.detached !== null) {
      store.unpin(pinned.entry);
      exchange.respond(DISCARDED);
      return;
    }
    store.touch(pinned.entry, readTimeMs());
    this.#count(status === "HIT" ? this.#hitsAt : this.#staleAt);
    answerFromStore(exchange, store, pinned, status, this.readAgeMs(pinned));
  }

  /** Stores the response of a ticket if it may; the filters of its content. Answers from the store after a 304. */
  receive(
    exchange: GateExchange,
    ticket: CacheTicket,
    draft: ResponseDraft,
  ): readonly ContentFilter[] {
    if (draft.status === 304 && ticket.revalidates && this.#refresh(exchange, ticket, draft))
      return [];
    if (draft.status >= 500 && this.answerAfterError(exchange, ticket)) return [];
    if (exchange.userData.detached === null) this.#count(this.#missesAt);
    draft.headers.push(["X-Cache", "MISS"]);
    const entry = this.#begin(exchange, ticket, draft);
    if (entry === -1) {
      this.land(ticket, false);
      return [];
    }
    const { store } = this.#parts;
    const writer = new ResponseWriter(store, entry, draft.contentLength, (isStored) => {
      if (isStored) this.#count(this.#storedAt);
      this.land(ticket, isStored);
    });
    return [writer];
  }

  /** Answers with a stale response in place of an error, if it may be used so (RFC 5861 section 4). */
  answerAfterError(exchange: GateExchange, ticket: CacheTicket): boolean {
    const { stale } = ticket;
    if (stale === null || (stale.record.flags & Flag.NoStale) !== 0) return false;
    const { lifetimeMs, staleIfErrorMs } = stale.record;
    if (this.readAgeMs(stale) >= lifetimeMs + staleIfErrorMs) return false;
    ticket.stale = null;
    this.land(ticket, false);
    this.answer(exchange, stale, "STALE");
    return true;
  }

  /** Ends what a ticket holds. */
  close(ticket: CacheTicket): void {
    this.land(ticket, true);
    if (ticket.stale === null) return;
    this.#parts.store.unpin(ticket.stale.entry);
    ticket.stale = null;
  }

  /** Ends the wait of requests for this one; `mayStore` false: the response is not one to wait for. */
  land(ticket: CacheTicket, mayStore: boolean): void {
    if (!ticket.leads) return;
    ticket.leads = false;
    this.#parts.flights.land(ticket.key.hashA, mayStore);
  }

  #begin(exchange: GateExchange, ticket: CacheTicket, draft: ResponseDraft): number {
    const { hasContent, status } = draft;
    if (!hasContent && (status !== 204 || exchange.head.methodId !== Method.GET)) return -1;
    if (exchange.head.methodId !== Method.GET) return -1;
    const headers = listStored(exchange, draft.headers);
    const lifetime = this.#judge(ticket, toHead(status, [...headers, ...listAges(draft)]));
    if (lifetime === undefined || draft.contentLength > this.#parts.store.entryBytesMax) return -1;
    return this.#store(exchange, ticket, status, describeStatus(draft), headers, lifetime);
  }

  #judge(ticket: CacheTicket, head: StorableHead): Lifetime | undefined {
    return judgeResponse(head, { ...ticket, answeredAtMs: this.#parts.readTimeMs() });
  }

  #store(
    exchange: GateExchange,
    ticket: CacheTicket,
    status: number,
    statusLine: string,
    headers: readonly (readonly [string, string])[],
    lifetime: Lifetime,
  ): number {
    const { store, keys, readTimeMs } = this.#parts;
    const base = (lifetime.flags & Flag.Public) === 0 ? ticket.key : ticket.publicKey;
    const record = { status, responseAtMs: readTimeMs(), ...lifetime };
    const vary = listNames(headers);
    if (vary.length > VARY_NAMES_MAX) return -1;
    let key: CacheKey | undefined = base;
    if (vary.length > 0) {
      const names = vary.join();
      const marker = { ...record, flags: lifetime.flags | Flag.Vary };
      const entry = store.begin(
        base,
        NO_BYTES,
        Buffer.from(names, "latin1"),
        marker,
        ticket.moment,
      );
      if (entry === -1 || !store.publish(entry)) return -1;
      key = keys.select(base, exchange.head, names);
    }
    if (key === undefined) return -1;
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    const tags = Buffer.from(readTags(headers), "latin1");
    return store.begin(key, tags, Buffer.from(statusLine + lines, "latin1"), record, ticket.moment);
  }

  /** Updates the stale response with the fields of a 304 (RFC 9111 section 4.3.4) and answers with it. */
  #refresh(exchange: GateExchange, ticket: CacheTicket, draft: ResponseDraft): boolean {
    const { stale } = ticket;
    if (stale === null) return false;
    const { store } = this.#parts;
    const [statusLine = "", ...lines] = readHead(store, stale).split("\r\n");
    const changes = listStored(exchange, draft.headers).filter(([name]) => !FIXED.test(name));
    const changed = new Set(changes.map(([name]) => name.toLowerCase()));
    const headers: (readonly [string, string])[] = lines
      .filter((line) => line !== "")
      .map((line): [string, string] => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon), line.slice(colon + 1).trim()];
      })
      .filter(([name]) => !changed.has(name.toLowerCase()));
    headers.push(...changes);
    const { status, bodyBytes } = stale.record;
    const lifetime = this.#judge(ticket, toHead(status, [...headers, ...listAges(draft)]));
    ticket.stale = null;
    let isStored = false;
    if (lifetime !== undefined) {
      const entry = this.#store(exchange, ticket, status, `${statusLine}\r\n`, headers, lifetime);
      isStored = entry !== -1 && this.#copyBody(stale.entry, entry, bodyBytes);
    }
    this.#count(this.#revalidatedAt);
    this.land(ticket, isStored);
    const fresh = isStored ? this.#findAny(exchange, ticket) : undefined;
    if (fresh === undefined) this.answer(exchange, stale, "HIT");
    else {
      store.unpin(stale.entry);
      this.answer(exchange, fresh, "HIT");
    }
    return true;
  }

  #findAny(exchange: GateExchange, ticket: CacheTicket): PinnedEntry | undefined {
    return this.find(exchange, ticket.key) ?? this.find(exchange, ticket.publicKey);
  }

  #copyBody(from: number, to: number, size: number): boolean {
    const { store } = this.#parts;
    for (let at = 0; at < size; at += 65_536) {
      const bytes = store.readBody(from, at, Math.min(size, at + 65_536), false);
      if (store.append(to, bytes)) continue;
      store.discard(to);
      return false;
    }
    return store.publish(to);
  }

  #count(at: number): void {
    const { values } = this.#parts.block;
    values[at] = values[at]! + 1;
  }
}

function listStored(
  { userData }: GateExchange,
  headers: readonly (readonly [string, string])[],
): (readonly [string, string])[] {
  const own = new Set(userData.responseFields.list().map(([name, value]) => `${name}: ${value}`));
  return headers.filter(([name, value]) => !UNSTORED.test(name) && !own.has(`${name}: ${value}`));
}

// The age at which a response arrives counts, but is not stored.
function listAges({ headers }: ResponseDraft): (readonly [string, string])[] {
  return headers.filter(([name]) => name.toLowerCase() === "age");
}

function toHead(status: number, headers: readonly (readonly [string, string])[]): StorableHead {
  return {
    status,
    get(wanted) {
      const values = headers.filter(([name]) => name.toLowerCase() === wanted);
      return values.length === 0 ? undefined : values.map(([, value]) => value).join(", ");
    },
  };
}

function listNames(headers: readonly (readonly [string, string])[]): string[] {
  const value = toHead(200, headers).get("vary") ?? "";
  const names = value
    .toLowerCase()
    .split(",")
    .map((name) => name.trim());
  return [...new Set(names.filter((name) => name !== ""))].sort();
}

function readTags(headers: readonly (readonly [string, string])[]): string {
  return toHead(200, headers).get("cache-tag") ?? "";
}

function describeStatus({ status, reason }: ResponseDraft): string {
  return `HTTP/1.1 ${status} ${reason}\r\n`;
}
