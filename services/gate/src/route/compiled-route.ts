// One route as the request path needs it: everything that can be decided once is decided here.
import type { ForwardPlanOptions, ForwardTarget } from "@platform/http1";
import { quoteJson } from "../access-log/access-line.ts";
import { FORWARDING_FIELDS } from "../client/forwarding-fields.ts";
import { ID_FIELDS } from "../client/request-ids.ts";
import type { TokenVerifier, VerifierSource } from "../filter/identity.ts";
import {
  CONTROL_CALLER_HEADER,
  CONTROL_SECRET_HEADER,
  makeRouteLabel,
  type LimitsSpec,
  type MetricBlock,
  type RouteKey,
  type RouteSpec,
} from "../snapshot/index.ts";
import type { PlanCache } from "./plan-cache.ts";
import { createBalancer, type Balancer, type BalancerParts } from "../upstream/balancer.ts";
import type { HeldPool, PoolRegistry } from "../upstream/pool-registry.ts";

/** Names that tell an upstream who the user is; a client's own are always cut. */
export const IDENTITY_FIELDS: readonly string[] = ["X-User-Id", "X-User-Roles", "X-Tenant-Id"];

const CUT_FIELDS: readonly string[] = [
  ...FORWARDING_FIELDS,
  ...ID_FIELDS,
  ...IDENTITY_FIELDS,
  CONTROL_SECRET_HEADER,
  CONTROL_CALLER_HEADER,
];
const VIA_FIELD = ["Via", "1.1 platform-gate"] as const;

/** One target of a route. */
export type RouteTarget = {
  readonly index: number;
  /** Cell of its shared counts and health. */
  readonly slot: number;
  readonly url: string;
  /** The URL as JSON text, for the access log. */
  readonly urlJson: string;
  /** Passes the client's Authorization on. */
  readonly forward: ForwardTarget;
  /** Cuts Authorization: it held the operator's token. */
  readonly forwardAnonymous: ForwardTarget;
};

/** What requests are counted under: the last row that was used is remembered. */
export class RowCache {
  readonly #metricsId: number;
  #labels = -1;
  #row = 0;

  constructor(metricsId: number) {
    this.#metricsId = metricsId;
  }

  /** Position of the row in the block. */
  find(block: MetricBlock, methodIndex: number, status: number): number {
    const labels = methodIndex * 1024 + status;
    if (labels === this.#labels) return this.#row;
    this.#labels = labels;
    this.#row = block.findRow(this.#metricsId, methodIndex, status);
    return this.#row;
  }
}

/** A route in force, or one that drains. Made by {@link compileRoute}. */
export type CompiledRoute = {
  readonly key: RouteKey;
  readonly prefix: string;
  readonly host: string | undefined;
  readonly spec: RouteSpec;
  readonly label: string;
  readonly labelJson: string;
  readonly rows: RowCache;
  readonly balancer: Balancer;
  readonly targets: readonly RouteTarget[];
  readonly pools: readonly HeldPool[];
  /** Checks the tokens of a route with its own `auth`. */
  readonly verify: TokenVerifier | undefined;
  /** Exchanges under way. */
  inFlight: number;
  /** No new request gets it; its pools are given back once nothing is under way. */
  isRemoved: boolean;
};

/** What compiling needs from the worker. */
export type RouteParts = BalancerParts & {
  pools: PoolRegistry;
  plans: PlanCache;
  verifiers: VerifierSource;
  limits: LimitsSpec;
};

/** Compiles a route. Throws, holding no pool, where a target or its TLS material cannot be used. */
export function compileRoute(spec: RouteSpec, parts: RouteParts): CompiledRoute {
  const label = makeRouteLabel(spec.host, spec.prefix);
  const pools: HeldPool[] = [];
  try {
    const targets = spec.targets.map((target, index): RouteTarget => {
      const held = parts.pools.acquire({
        url: target.url,
        tls: spec.upstreamTls,
        connectMs: spec.timeouts.connectMs,
        limits: parts.limits,
      });
      pools.push(held);
      const plan = describePlan(spec, target.url);
      const anonymous = [...CUT_FIELDS, "Authorization"];
      return {
        index,
        slot: target.slot,
        url: target.url,
        urlJson: quoteJson(target.url),
        forward: { pool: held.pool, plan: parts.plans.compile(plan) },
        forwardAnonymous: {
          pool: held.pool,
          plan: parts.plans.compile({ ...plan, removeRequestFields: anonymous }),
        },
      };
    });
    return {
      key: spec.key,
      prefix: spec.prefix,
      host: spec.host,
      spec,
      label,
      labelJson: quoteJson(label),
      rows: new RowCache(spec.metricsId),
      balancer: createBalancer(spec.balancer, spec.targets, spec.slot, parts),
      targets,
      pools,
      verify: spec.auth.type === "bearer" ? parts.verifiers.forRoute(spec.auth) : undefined,
      inFlight: 0,
      isRemoved: false,
    };
  } catch (error) {
    for (const held of pools) held.release(0);
    throw error;
  }
}

function describePlan(spec: RouteSpec, targetUrl: string): ForwardPlanOptions {
  const url = new URL(targetUrl);
  const prepend = url.pathname.replace(/\/+$/, "");
  return {
    ...(spec.hostHeader === "target" ? { host: { value: url.host } } : {}),
    hostFallback: url.host,
    removeRequestFields: CUT_FIELDS,
    addRequestFields: [VIA_FIELD],
    ...(spec.stripPrefix ? { stripPathBytes: spec.prefix.replace(/\/+$/, "").length } : {}),
    ...(prepend === "" ? {} : { prependPath: prepend }),
    timeouts: {
      responseHeadMs: spec.timeouts.responseHeadMs,
      bodyIdleMs: spec.timeouts.idleMs,
      totalMs: spec.timeouts.totalMs,
    },
  };
}
