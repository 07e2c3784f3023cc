// The captured requests: a ring for each tunnel, and one bound for the memory of all.
import { randomBytes } from "node:crypto";
import { CapturedRequest, type CaptureLedger } from "./captured-request.ts";
import type { Capture, RequestTap, TappedRequest } from "./tap.ts";

/** Options of {@link CaptureStore}. */
export interface CaptureStoreOptions {
  /** Requests of one tunnel. */
  requestsMax: number;
  /** Memory of all tunnels. */
  bytesMax: number;
}

/** Is told of each captured request when it begins and when it has ended. */
export type CaptureListener = (request: CapturedRequest) => void;

interface Ring {
  /** Oldest first. */
  readonly entries: Map<string, CapturedRequest>;
  bytes: number;
}

/**
 * Holds captured requests in memory. A full ring evicts its oldest request. If the memory of all is used up, the tunnel
 * that holds the most loses its oldest requests, so that a busy tunnel does not evict those of a quiet one.
 */
export class CaptureStore implements Capture, CaptureLedger {
  readonly #options: CaptureStoreOptions;
  readonly #rings = new Map<string, Ring>();
  /** Ids of another process must not name requests of this one. */
  readonly #prefix = randomBytes(6).toString("base64url");
  #listener: CaptureListener | undefined;
  #count = 0;
  #size = 0;
  #bytes = 0;

  constructor(options: CaptureStoreOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#size;
  }

  /** Memory in use. */
  get bytes(): number {
    return this.#bytes;
  }

  begin(request: TappedRequest): RequestTap {
    const id = `${this.#prefix}-${(this.#count++).toString(36)}`;
    const entry = new CapturedRequest(id, request, this);
    const tunnelId = request.tunnel.id;
    const ring = this.#ringOf(tunnelId);
    ring.entries.set(id, entry);
    this.#size++;
    if (ring.entries.size > this.#options.requestsMax) this.#evictOldest(tunnelId, ring);
    this.#account(tunnelId, ring, entry.bytes);
    this.#listener?.(entry);
    return entry;
  }

  /** Sets the listener; returns a function that removes it. */
  listen(listener: CaptureListener): () => void {
    this.#listener = listener;
    return () => (this.#listener = undefined);
  }

  settle(request: CapturedRequest): void {
    this.#listener?.(request);
  }

  forget(tunnelId: string): void {
    const ring = this.#rings.get(tunnelId);
    if (ring === undefined) return;
    for (const entry of ring.entries.values()) entry.drop();
    this.#size -= ring.entries.size;
    this.#bytes -= ring.bytes;
    this.#rings.delete(tunnelId);
  }

  /** Forgets the tunnels that no longer exist. */
  retain(exists: (tunnelId: string) => boolean): void {
    for (const tunnelId of this.#rings.keys()) if (!exists(tunnelId)) this.forget(tunnelId);
  }

  /** Requests of a tunnel, newest first; with `before` those that are older than the request of this id. */
  list(tunnelId: string, before?: string): CapturedRequest[] {
    const all = [...(this.#rings.get(tunnelId)?.entries.values() ?? [])].reverse();
    if (before === undefined) return all;
    // The request itself may be evicted. Those of another process are gone.
    const count = this.#readCount(before);
    return all.filter(({ id }) => this.#readCount(id) < count);
  }

  /** Number of requests of a tunnel. */
  count(tunnelId: string): number {
    return this.#rings.get(tunnelId)?.entries.size ?? 0;
  }

  find(tunnelId: string, id: string): CapturedRequest | undefined {
    return this.#rings.get(tunnelId)?.entries.get(id);
  }

  charge(request: CapturedRequest, bytes: number): void {
    const tunnelId = request.begun.tunnel.id;
    const ring = this.#rings.get(tunnelId);
    if (ring?.entries.get(request.id) === request) this.#account(tunnelId, ring, bytes);
  }

  #readCount(id: string): number {
    const start = `${this.#prefix}-`;
    return id.startsWith(start) ? Number.parseInt(id.slice(start.length), 36) : Number.NaN;
  }

  #ringOf(tunnelId: string): Ring {
    let ring = this.#rings.get(tunnelId);
    if (ring === undefined) {
      ring = { entries: new Map(), bytes: 0 };
      this.#rings.set(tunnelId, ring);
    }
    return ring;
  }

  #account(tunnelId: string, ring: Ring, bytes: number): void {
    ring.bytes += bytes;
    this.#bytes += bytes;
    while (this.#bytes > this.#options.bytesMax && this.#size > 0) {
      // Most often the busy tunnel is the one that needs the memory: no search then.
      const isAboveAverage = ring.bytes * this.#rings.size >= this.#bytes;
      const [id, largest] = isAboveAverage ? [tunnelId, ring] : this.#findLargest();
      this.#evictOldest(id, largest);
    }
  }

  #findLargest(): [string, Ring] {
    let found: [string, Ring] | undefined;
    for (const entry of this.#rings) {
      if (found === undefined || entry[1].bytes > found[1].bytes) found = entry;
    }
    return found!;
  }

  #evictOldest(tunnelId: string, ring: Ring): void {
    const [oldest] = ring.entries.values();
    if (oldest === undefined) return;
    ring.entries.delete(oldest.id);
    ring.bytes -= oldest.bytes;
    this.#bytes -= oldest.bytes;
    this.#size--;
    oldest.drop();
    if (ring.entries.size === 0) this.#rings.delete(tunnelId);
  }
}
