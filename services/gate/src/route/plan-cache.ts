// Caches compiled forwarding plans: targets with equal rewrite rules share one.
import { compilePlan, FORWARDING_FIELDS, ID_FIELDS, type ForwardPlan } from "@platform/http1";
import {
  CONTROL_CALLER_HEADER,
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
  CONTROL_SECRET_HEADER,
  CONTROL_CALLER_HEADER,
];

/** Maximum number of cached plans; a full cache is cleared. */
const PLANS_MAX = 4_096;
const VIA_FIELD = ["Via", "1.1 platform-gate"] as const;

/** Caches plans by their rewrite rules: ten thousand routes need only a few plans. */
export class PlanCache {
  readonly #plans = new Map<string, ForwardPlan>();

  /** Returns the plan of a rewrite; `isAnonymous` also removes Authorization. Throws like `compilePlan`. */
  compile(rewrite: Rewrite, isAnonymous: boolean): ForwardPlan {
    const { host, keepsHost, stripPathBytes, prependPath, cutFields, headers } = rewrite;
    const { responseHeadMs, bodyIdleMs, totalMs } = rewrite;
    const key = `${host} ${keepsHost} ${isAnonymous} ${stripPathBytes} ${prependPath} ${responseHeadMs} ${bodyIdleMs} ${totalMs} ${cutFields.join()} ${JSON.stringify(headers)}`;
    const known = this.#plans.get(key);
    if (known !== undefined) return known;
    const cuts = [...CUT_FIELDS, ...cutFields, ...(headers?.removeRequest ?? [])];
    const plan = compilePlan({
      ...(keepsHost ? {} : { host: { value: host } }),
      hostFallback: host,
      removeRequestFields: isAnonymous ? [...cuts, "Authorization"] : cuts,
      addRequestFields: [VIA_FIELD, ...(headers?.addRequest ?? [])],
      removeResponseFields: headers?.removeResponse ?? [],
      addResponseFields: headers?.addResponse ?? [],
      stripPathBytes,
      prependPath,
      timeouts: { responseHeadMs, bodyIdleMs, totalMs, tunnelIdleMs: bodyIdleMs },
    });
    if (this.#plans.size >= PLANS_MAX) this.#plans.clear();
    this.#plans.set(key, plan);
    return plan;
  }
}
