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
    return entry;
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

  /** Requests of a tunnel, newest first. */
  list(tunnelId: string): CapturedRequest[] {
    return [...(this.#rings.get(tunnelId)?.entries.values() ?? [])].reverse();
  }

  find(tunnelId: string, id: string): CapturedRequest | undefined {
    return this.#rings.get(tunnelId)?.entries.get(id);
  }

  charge(request: CapturedRequest, bytes: number): void {
    const tunnelId = request.begun.tunnel.id;
    const ring = this.#rings.get(tunnelId);
    if (ring?.entries.get(request.id) === request) this.#account(tunnelId, ring, bytes);
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
