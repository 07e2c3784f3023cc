// Caches compiled forwarding plans: targets with equal rewrite rules share one.
import { compilePlan, FORWARDING_FIELDS, ID_FIELDS, type ForwardPlan } from "@platform/http1";
import { type PlanSource, PlanVariant } from "../exchange/route-target.ts";
import {
  CONSOLE_CLIENT_HEADER,
  CONTROL_CALLER_HEADER,
  CLIENT_CERT_FIELDS,
  CONTROL_SECRET_HEADER,
  type HeaderRules,
} from "../shared-state/index.ts";

/** Rewrite rules of one target. */
export interface Rewrite {
  /** The target's authority: sent as Host if the client's Host is missing or not kept. */
  host: string;
  keepsHost: boolean;
  /** Number of leading path bytes to remove. */
  stripPathBytes: number;
  /** Prepended path without a trailing slash; may be empty. */
  prependPath: string;
  /** Removed from requests in addition to {@link CUT_FIELDS}. */
  cutFields: readonly string[];
  headers: HeaderRules | undefined;
  responseHeadMs: number;
  bodyIdleMs: number;
  totalMs: number;
}

/**
 * Fields that clients may not set for an upstream: forwarding, request IDs, identity and control-plane fields.
 * Max-Forwards is rewritten with its decremented value.
 */
export const CUT_FIELDS: readonly string[] = [
  ...FORWARDING_FIELDS,
  ...ID_FIELDS,
  "X-User-Id",
  "X-User-Roles",
  "X-Tenant-Id",
  "Max-Forwards",
  ...CLIENT_CERT_FIELDS,
  CONTROL_SECRET_HEADER,
  CONTROL_CALLER_HEADER,
  CONSOLE_CLIENT_HEADER,
];

/** Maximum number of cached plans; a full cache is cleared. */
const PLANS_MAX = 4_096;
const VIA_FIELD = ["Via", "1.1 platform-gate"] as const;

/** Conditions of a client, which do not apply to the revalidation of a stored response. */
const CONDITION_FIELDS = [
  "If-Match",
  "If-None-Match",
  "If-Modified-Since",
  "If-Unmodified-Since",
  "If-Range",
  "Range",
];

/** Caches plans by their rewrite rules: ten thousand routes need only a few plans. */
export class PlanCache {
  readonly #plans = new Map<string, RewritePlans>();

  /** Returns the plans of a rewrite. Throws like `compilePlan`. */
  compile(rewrite: Rewrite): RewritePlans {
    const { host, keepsHost, stripPathBytes, prependPath, cutFields, headers } = rewrite;
    const { responseHeadMs, bodyIdleMs, totalMs } = rewrite;
    const rules = headers === undefined ? "" : JSON.stringify(headers);
    const key = `${host} ${keepsHost} ${stripPathBytes} ${prependPath} ${responseHeadMs} ${bodyIdleMs} ${totalMs} ${cutFields.join()} ${rules}`;
    const known = this.#plans.get(key);
    if (known !== undefined) return known;
    const plans = new RewritePlans(rewrite);
    if (this.#plans.size >= PLANS_MAX) this.#plans.clear();
    this.#plans.set(key, plans);
    return plans;
  }
}

/** The plans of a rewrite. Those that few requests need are compiled on first use: they only remove further fields. */
export class RewritePlans implements PlanSource {
  readonly #rewrite: Rewrite;
  readonly #plans: (ForwardPlan | undefined)[] = [];

  /** Compiles the plain variant. Throws like `compilePlan`. */
  constructor(rewrite: Rewrite) {
    this.#rewrite = rewrite;
    this.#plans[PlanVariant.plain] = compileVariant(rewrite, PlanVariant.plain);
  }

  find(variant: number): ForwardPlan {
    return (this.#plans[variant] ??= compileVariant(this.#rewrite, variant));
  }
}

function compileVariant(rewrite: Rewrite, variant: number): ForwardPlan {
  const { host, keepsHost, stripPathBytes, prependPath, cutFields, headers } = rewrite;
  const { responseHeadMs, bodyIdleMs, totalMs } = rewrite;
  return compilePlan({
    ...(keepsHost ? {} : { host: { value: host } }),
    hostFallback: host,
    removeRequestFields: [
      ...CUT_FIELDS,
      ...cutFields,
      ...(headers?.removeRequest ?? []),
      ...((variant & PlanVariant.anonymous) === 0 ? [] : ["Authorization"]),
      ...((variant & PlanVariant.revalidation) === 0 ? [] : CONDITION_FIELDS),
    ],
    addRequestFields: [VIA_FIELD, ...(headers?.addRequest ?? [])],
    removeResponseFields: headers?.removeResponse ?? [],
    addResponseFields: headers?.addResponse ?? [],
    stripPathBytes,
    prependPath,
    timeouts: { responseHeadMs, bodyIdleMs, totalMs, tunnelIdleMs: bodyIdleMs },
  });
}
