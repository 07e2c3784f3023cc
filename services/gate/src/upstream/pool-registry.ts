// The connection pools of a worker: one for each upstream, shared by all routes to it.
import {
  createUpstreamPool,
  type Engine,
  type UpstreamAddress,
  type UpstreamPool,
} from "@platform/http1";
import { type AddressPolicy, createAddressPolicy } from "@platform/kernel/egress";
import { makeTargetKey, type LimitsSpec, type UpstreamTlsSpec } from "../shared-state/index.ts";
import type { Resolver } from "./resolver.ts";
import { type TargetUrl, TargetUrls } from "./target-url.ts";

/** An upstream and its connection settings. */
export interface PoolRequest {
  url: string;
  tls: UpstreamTlsSpec | undefined;
  connectMs: number;
  limits: LimitsSpec;
  /** The only networks that it may be in, beside public addresses; absent: anywhere. */
  networks: readonly string[] | undefined;
}

interface Entry {
  readonly pool: UpstreamPool;
  readonly ready: Promise<void>;
  holders: number;
  /** Closes the pool after at most `drainMs`; called once, without holders. */
  readonly close: (drainMs: number) => void;
}

/** A reference to a pool. */
export class HeldPool {
  /** The URL of the request for the pool. */
  readonly url: TargetUrl;
  readonly pool: UpstreamPool;
  #entry: Entry | undefined;

  constructor(url: TargetUrl, entry: Entry) {
    this.url = url;
    this.pool = entry.pool;
    this.#entry = entry;
    entry.holders++;
  }

  /** Resolves when the first DNS lookup of the upstream has succeeded or failed; undefined after the release. */
  get ready(): Promise<void> | undefined {
    return this.#entry?.ready;
  }

  /** Releases the reference; repeated calls do nothing. The last release closes the pool after at most `drainMs`. */
  release(drainMs: number): void {
    const entry = this.#entry;
    if (entry === undefined) return;
    this.#entry = undefined;
    if (--entry.holders === 0) entry.close(drainMs);
  }
}

/** Opens pools on demand and closes those without references. */
export class PoolRegistry {
  readonly #engine: Engine;
  readonly #resolver: Resolver;
  readonly #urls = new TargetUrls();
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
    const { limits, tls, connectMs } = request;
    const url = this.#urls.parse(request.url);
    const upstream = tls === undefined ? url.origin : makeTargetKey(request.url, tls);
    const key = `${connectMs} ${limits.upstreamConnectionsMax} ${limits.upstreamIdleMax} ${limits.upstreamIdleMs} ${request.networks?.join() ?? ""} ${upstream}`;
    return new HeldPool(url, this.#entries.get(key) ?? this.#open(key, request));
  }

  /** Closes every pool immediately. */
  close(): void {
    for (const { pool, close } of this.#entries.values()) {
      close(0);
      pool.close();
    }
  }

  #open(key: string, { url, tls, connectMs, limits, networks }: PoolRequest): Entry {
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
    const policy: AddressPolicy =
      networks === undefined ? { isAllowed: () => true } : createAddressPolicy(networks);
    const { ready, stop } = this.#resolver.watch(hostname, (hosts) => {
      const allowed = hosts.filter((host) => policy.isAllowed(host));
      pool.setAddresses(allowed.map((host): UpstreamAddress => ({ host, port: portNumber })));
    });
    const close = (drainMs: number): void => {
      this.#entries.delete(key);
      stop();
      void pool.drain(drainMs);
    };
    const entry = { pool, ready, holders: 0, close };
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
