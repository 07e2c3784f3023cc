// Compiles a route for the request path: everything that does not depend on the request is computed here.
import { quoteJson } from "../access-log/access-line.ts";
import type { CompiledRoute } from "../exchange/exchange.ts";
import { RouteTarget } from "../exchange/route-target.ts";
import { SeriesCache } from "../exchange/series-cache.ts";
import { compileSteps } from "../filter/compile-steps.ts";
import type { StepParts } from "../filter/step-parts.ts";
import {
  makeRouteLabel,
  type LimitsSpec,
  type RouteSpec,
  type TargetSpec,
} from "../shared-state/index.ts";
import { PathPatterns, rankPattern } from "../exchange/path-patterns.ts";
import type { PlanCache, Rewrite } from "./plan-cache.ts";
import { createBalancer, type Balancer, type BalancerOptions } from "../upstream/balancer.ts";
import { Resilience, type ResilienceOptions } from "../upstream/resilience.ts";
import { ShiftingBalancer } from "../upstream/shifting-balancer.ts";
import type { HeldPool, PoolRegistry } from "../upstream/pool-registry.ts";
import type { TargetUrl } from "../upstream/target-url.ts";

/** Options of {@link compileRoute}. */
export type CompileRouteOptions = BalancerOptions & {
  pools: PoolRegistry;
  plans: PlanCache;
  steps: StepParts;
  resilience: ResilienceOptions;
  limits: LimitsSpec;
};

/** Compiles a route. Throws, without retaining a pool, if a target or its TLS material is invalid. */
export function compileRoute(spec: RouteSpec, options: CompileRouteOptions): CompiledRoute {
  const label = makeRouteLabel(spec.host, spec.prefix);
  const pools: HeldPool[] = [];
  try {
    const targets = spec.targets.map(({ slot, link, url, model }, index) => {
      const held = options.pools.acquire({
        url,
        tls: spec.upstreamTls,
        connectMs: spec.timeouts.connectMs,
        limits: options.limits,
        networks: spec.confined?.networks,
      });
      pools.push(held);
      const plans = options.plans.compile(describeRewrite(spec, held.url, model));
      return new RouteTarget({ index, slot, link, url, pool: held.pool, plans });
    });
    return {
      key: spec.key,
      prefix: spec.prefix,
      host: spec.host,
      methods: spec.methods,
      patterns: spec.paths === undefined ? undefined : new PathPatterns(spec.paths),
      specificity: spec.variant === undefined ? undefined : rankPattern(spec.paths?.[0] ?? ""),
      spec,
      label,
      labelJson: spec.accessLog ? quoteJson(label) : "",
      series: new SeriesCache(spec.metricsId),
      balancer: createRouteBalancer(spec, options),
      targets,
      pools,
      steps: compileSteps(spec, options.steps),
      resilience:
        spec.resilience === undefined
          ? undefined
          : new Resilience(
              spec.resilience,
              spec.targets.map(({ link }) => link),
              options.resilience,
            ),
      inFlight: 0,
      isRemoved: false,
    };
  } catch (error) {
    for (const held of pools) held.release(0);
    throw error;
  }
}

function createRouteBalancer(spec: RouteSpec, options: CompileRouteOptions): Balancer {
  const create = (targets: readonly TargetSpec[]): Balancer =>
    createBalancer(spec.balancer, targets, spec.slot, options);
  if (spec.resilience?.canary === undefined) return create(spec.targets);
  const { routeState, resilience } = options;
  const { targets, slot: routeSlot } = spec;
  return new ShiftingBalancer({ targets, routeSlot, routeState, links: resilience.links, create });
}

function describeRewrite(spec: RouteSpec, url: TargetUrl, model: TargetSpec["model"]): Rewrite {
  const isStripped = spec.stripPrefix || spec.replacePrefix !== undefined;
  const replacement = spec.replacePrefix?.replace(/\/+$/, "") ?? "";
  return {
    host: url.host,
    keepsHost: model?.keepsHost ?? spec.hostHeader === "client",
    stripPathBytes: isStripped ? spec.prefix.replace(/\/+$/, "").length : 0,
    prependPath: `${url.path}${replacement}`,
    headers: model === undefined ? spec.headers : model.headers,
    cutFields: spec.cutFields,
    responseHeadMs: spec.timeouts.responseHeadMs,
    bodyIdleMs: spec.timeouts.idleMs,
    totalMs: spec.timeouts.totalMs,
  };
}
