// Compiles a route for the request path: everything that does not depend on the request is computed here.
import type { ForwardTarget } from "@platform/http1";
import { quoteJson } from "../access-log/access-line.ts";
import type { CompiledRoute, RouteTarget } from "../exchange/exchange.ts";
import { SeriesCache } from "../exchange/series-cache.ts";
import { compileSteps } from "../filter/compile-steps.ts";
import type { StepParts } from "../filter/step-parts.ts";
import {
  makeRouteLabel,
  type LimitsSpec,
  type RouteSpec,
  type TargetSpec,
} from "../shared-state/index.ts";
import type { PlanCache, Rewrite } from "./plan-cache.ts";
import { encodePrefix } from "./prefix-table.ts";
import { createBalancer, type Balancer, type BalancerOptions } from "../upstream/balancer.ts";
import { Resilience, type ResilienceOptions } from "../upstream/resilience.ts";
import { ShiftingBalancer } from "../upstream/shifting-balancer.ts";
import type { HeldPool, PoolRegistry } from "../upstream/pool-registry.ts";

/** Conditions of a client, which do not apply to the revalidation of a stored response. */
const CONDITION_FIELDS = [
  "If-Match",
  "If-None-Match",
  "If-Modified-Since",
  "If-Unmodified-Since",
  "If-Range",
  "Range",
];

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
    const targets = spec.targets.map((target, index): RouteTarget => {
      const held = options.pools.acquire({
        url: target.url,
        tls: spec.upstreamTls,
        connectMs: spec.timeouts.connectMs,
        limits: options.limits,
      });
      pools.push(held);
      const rewrite = describeRewrite(spec, target.url);
      const revalidation =
        spec.steps.cache === undefined
          ? rewrite
          : { ...rewrite, cutFields: [...rewrite.cutFields, ...CONDITION_FIELDS] };
      const createForward = (plan: Rewrite, isAnonymous: boolean): ForwardTarget => ({
        pool: held.pool,
        plan: options.plans.compile(plan, isAnonymous),
      });
      return {
        index,
        slot: target.slot,
        link: target.link,
        url: target.url,
        urlJson: quoteJson(target.url),
        forward: createForward(rewrite, false),
        forwardAnonymous: createForward(rewrite, true),
        revalidate: createForward(revalidation, false),
        revalidateAnonymous: createForward(revalidation, true),
      };
    });
    return {
      key: spec.key,
      encodedPrefix: encodePrefix(spec.prefix),
      host: spec.host,
      methods: spec.methods,
      spec,
      label,
      labelJson: quoteJson(label),
      series: new SeriesCache(spec.metricsId),
      balancer: createRouteBalancer(spec, options),
      targets,
      pools,
      steps: compileSteps(spec, options.steps),
      resilience:
        spec.resilience === undefined
          ? undefined
          : new Resilience(spec.resilience, options.resilience),
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

function describeRewrite(spec: RouteSpec, targetUrl: string): Rewrite {
  const url = new URL(targetUrl);
  return {
    host: url.host,
    keepsHost: spec.hostHeader === "client",
    stripPathBytes:
      spec.stripPrefix || spec.replacePrefix !== undefined
        ? spec.prefix.replace(/\/+$/, "").length
        : 0,
    prependPath: `${url.pathname.replace(/\/+$/, "")}${spec.replacePrefix ?? ""}`.replace(
      /\/+$/,
      "",
    ),
    headers: spec.headers,
    cutFields: spec.cutFields,
    responseHeadMs: spec.timeouts.responseHeadMs,
    bodyIdleMs: spec.timeouts.idleMs,
    totalMs: spec.timeouts.totalMs,
  };
}
