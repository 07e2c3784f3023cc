// The connection pools of a worker: one for each upstream, shared by all routes to it.
import {
  createUpstreamPool,
  type Engine,
  type UpstreamAddress,
  type UpstreamPool,
} from "@platform/http1";
import { makeTargetKey, type LimitsSpec, type UpstreamTlsSpec } from "../shared-state/index.ts";
import type { Resolver } from "./resolver.ts";

/** An upstream and its connection settings. */
export interface PoolRequest {
  url: string;
  tls: UpstreamTlsSpec | undefined;
  connectMs: number;
  limits: LimitsSpec;
}

/** A reference to a pool. */
export interface HeldPool {
  readonly pool: UpstreamPool;
  /** Resolves when the first DNS lookup of the upstream has succeeded or failed. */
  readonly ready: Promise<void>;
  /** Releases the reference; repeated calls do nothing. The last release closes the pool after at most `drainMs`. */
  release(drainMs: number): void;
}

interface Entry {
  pool: UpstreamPool;
  ready: Promise<void>;
  stopWatch: () => void;
  holders: number;
}

/** Opens pools on demand and closes those without references. */
export class PoolRegistry {
  readonly #engine: Engine;
  readonly #resolver: Resolver;
  readonly #entries = new Map<string, Entry>();

  constructor(engine: Engine, resolver: Resolver) {
    this.#engine = engine;
    this.#resolver = resolver;
  }

  /** Number of open pools. */
  get size(): number {
    return this.#entries.size;
  }

  /** Returns the pool of an upstream; equal requests share one. Throws if the TLS material is invalid. */
  acquire(request: PoolRequest): HeldPool {
    const { limits } = request;
    const key = JSON.stringify([
      makeTargetKey(request.url, request.tls),
      request.connectMs,
      limits.upstreamConnectionsMax,
      limits.upstreamIdleMax,
      limits.upstreamIdleMs,
    ]);
    const entry = this.#entries.get(key) ?? this.#open(key, request);
    entry.holders++;
    let isHeld = true;
    const release = (drainMs: number): void => {
      if (!isHeld) return;
      isHeld = false;
      if (--entry.holders > 0) return;
      this.#entries.delete(key);
      entry.stopWatch();
      void entry.pool.drain(drainMs);
    };
    return { pool: entry.pool, ready: entry.ready, release };
  }

  /** Closes every pool immediately. */
  close(): void {
    for (const entry of this.#entries.values()) {
      entry.stopWatch();
      entry.pool.close();
    }
    this.#entries.clear();
  }

  #open(key: string, { url, tls, connectMs, limits }: PoolRequest): Entry {
    const { protocol, hostname, port } = new URL(url);
    const isSecure = protocol === "https:";
    const pool = createUpstreamPool({
      engine: this.#engine,
      addresses: [],
      ...(isSecure ? { tls: describeTls(hostname, tls) } : {}),
      connectionsMax: limits.upstreamConnectionsMax,
      idleMax: limits.upstreamIdleMax,
      idleTimeoutMs: limits.upstreamIdleMs,
      connectTimeoutMs: connectMs,
      waitTimeoutMs: connectMs,
      headBytesMax: limits.headBytesMax,
    });
    pool.label = url;
    const portNumber = port === "" ? (isSecure ? 443 : 80) : Number(port);
    const { ready, stop } = this.#resolver.watch(hostname, (hosts) => {
      pool.setAddresses(hosts.map((host): UpstreamAddress => ({ host, port: portNumber })));
    });
    const entry = { pool, ready, stopWatch: stop, holders: 0 };
    this.#entries.set(key, entry);
    return entry;
  }
}

function describeTls(
  hostname: string,
  tls: UpstreamTlsSpec | undefined,
): { serverName: string; ca?: string; cert?: string; key?: string } {
  return {
    serverName: hostname.startsWith("[") ? hostname.slice(1, -1) : hostname,
    ...(tls?.caPem === undefined ? {} : { ca: tls.caPem }),
    ...(tls?.certPem === undefined ? {} : { cert: tls.certPem }),
    ...(tls?.keyPem === undefined ? {} : { key: tls.keyPem }),
  };
}
