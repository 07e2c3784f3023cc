// Compiles a route for the request path: everything that does not depend on the request is computed here.
import type { ForwardTarget } from "@platform/http1";
import { quoteJson } from "../access-log/access-line.ts";
import type { TokenVerifier, VerifierSource } from "../filter/identity.ts";
import {
  makeRouteLabel,
  type LimitsSpec,
  type MetricBlock,
  type RouteKey,
  type RouteSpec,
} from "../shared-state/index.ts";
import type { PlanCache, Rewrite } from "./plan-cache.ts";
import { encodePrefix, type EncodedPrefix } from "./prefix-table.ts";
import { createBalancer, type Balancer, type BalancerOptions } from "../upstream/balancer.ts";
import type { HeldPool, PoolRegistry } from "../upstream/pool-registry.ts";

/** One target of a route. */
export interface RouteTarget {
  readonly index: number;
  /** Slot in the shared active counts and target state. */
  readonly slot: number;
  readonly url: string;
  /** The URL as a JSON string for the access log. */
  readonly urlJson: string;
  /** Forwards the client's Authorization. */
  readonly forward: ForwardTarget;
  /** Removes Authorization because it contains the operator token. */
  readonly forwardAnonymous: ForwardTarget;
}

/** Finds the metric series of requests; caches the series used last. */
export class SeriesCache {
  readonly #metricsId: number;
  #labels = -1;
  #series = 0;

  constructor(metricsId: number) {
    this.#metricsId = metricsId;
  }

  /** Position of the series in the block. */
  find(block: MetricBlock, methodIndex: number, status: number): number {
    const labels = methodIndex * 1024 + status;
    if (labels === this.#labels) return this.#series;
    this.#labels = labels;
    this.#series = block.findSeries(this.#metricsId, methodIndex, status);
    return this.#series;
  }
}

/** An active or draining route. Created by {@link compileRoute}. */
export interface CompiledRoute {
  readonly key: RouteKey;
  readonly encodedPrefix: EncodedPrefix;
  readonly host: string | undefined;
  readonly spec: RouteSpec;
  readonly label: string;
  readonly labelJson: string;
  readonly series: SeriesCache;
  readonly balancer: Balancer;
  readonly targets: readonly RouteTarget[];
  readonly pools: readonly HeldPool[];
  /** Verifies tokens if the route has its own `auth`. */
  readonly verify: TokenVerifier | undefined;
  /** Active exchanges. */
  inFlight: number;
  /** The route receives no new requests; its pools are released when no exchange is active. */
  isRemoved: boolean;
}

/** Options of {@link compileRoute}. */
export type CompileRouteOptions = BalancerOptions & {
  pools: PoolRegistry;
  plans: PlanCache;
  verifiers: VerifierSource;
  limits: LimitsSpec;
};

/** Compiles a route. Throws, without retaining a pool, if a target or its TLS material is invalid. */
export function compileRoute(spec: RouteSpec, options: CompileRouteOptions): CompiledRoute {
  const label = makeRouteLabel(spec.host, spec.prefix);
  const pools: HeldPool[] = [];
  try {
    const targets = spec.targets.map((target, index): RouteTarget => {
      const held = options.pools.acquire({
        url: target.url,
        tls: spec.upstreamTls,
        connectMs: spec.timeouts.connectMs,
        limits: options.limits,
      });
      pools.push(held);
      const rewrite = describeRewrite(spec, target.url);
      return {
        index,
        slot: target.slot,
        url: target.url,
        urlJson: quoteJson(target.url),
        forward: { pool: held.pool, plan: options.plans.compile(rewrite, false) },
        forwardAnonymous: { pool: held.pool, plan: options.plans.compile(rewrite, true) },
      };
    });
    return {
      key: spec.key,
      encodedPrefix: encodePrefix(spec.prefix),
      host: spec.host,
      spec,
      label,
      labelJson: quoteJson(label),
      series: new SeriesCache(spec.metricsId),
      balancer: createBalancer(spec.balancer, spec.targets, spec.slot, options),
      targets,
      pools,
      verify: spec.auth.type === "bearer" ? options.verifiers.forRoute(spec.auth) : undefined,
      inFlight: 0,
      isRemoved: false,
    };
  } catch (error) {
    for (const held of pools) held.release(0);
    throw error;
  }
}

function describeRewrite(spec: RouteSpec, targetUrl: string): Rewrite {
  const url = new URL(targetUrl);
  return {
    host: url.host,
    keepsHost: spec.hostHeader === "client",
    stripPathBytes: spec.stripPrefix ? spec.prefix.replace(/\/+$/, "").length : 0,
    prependPath: url.pathname.replace(/\/+$/, ""),
    cutFields: spec.cutFields,
    responseHeadMs: spec.timeouts.responseHeadMs,
    bodyIdleMs: spec.timeouts.idleMs,
    totalMs: spec.timeouts.totalMs,
  };
}
