// Compiled forwarding plans, shared by all targets that are rewritten in the same way.
import { compilePlan, type ForwardPlan } from "@platform/http1";
import { FORWARDING_FIELDS } from "../client/forwarding-fields.ts";
import { ID_FIELDS } from "../client/request-ids.ts";
import { CONTROL_CALLER_HEADER, CONTROL_SECRET_HEADER } from "../shared-state/index.ts";

/** What differs from target to target. */
export interface Rewrite {
  /** The target's authority: sent as Host where the client's is not kept, or where it sent none. */
  host: string;
  keepsHost: boolean;
  /** Leading bytes of the path that are cut off. */
  stripPathBytes: number;
  /** Path put in front, without a trailing slash; may be empty. */
  prependPath: string;
  /** Cut from requests beside {@link CUT_FIELDS}. */
  cutFields: readonly string[];
  responseHeadMs: number;
  bodyIdleMs: number;
  totalMs: number;
}

/**
 * Names that a client may not set for an upstream: forwarding, ids, identity, and words to the control plane. Max-Forwards
 * is counted down on its way.
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

/** Plans that are remembered; what is past it is compiled again, not shared. */
const PLANS_MAX = 4_096;
const VIA_FIELD = ["Via", "1.1 platform-gate"] as const;

/** Remembers plans by what they rewrite: ten thousand routes need few of them. */
export class PlanCache {
  readonly #plans = new Map<string, ForwardPlan>();

  /** The plan for a rewrite; `isAnonymous` cuts Authorization as well. Throws as `compilePlan` does. */
  compile(rewrite: Rewrite, isAnonymous: boolean): ForwardPlan {
    const { host, keepsHost, stripPathBytes, prependPath, cutFields } = rewrite;
    const { responseHeadMs, bodyIdleMs, totalMs } = rewrite;
    const key = `${host} ${keepsHost} ${isAnonymous} ${stripPathBytes} ${prependPath} ${responseHeadMs} ${bodyIdleMs} ${totalMs} ${cutFields.join()}`;
    const known = this.#plans.get(key);
    if (known !== undefined) return known;
    const cuts = [...CUT_FIELDS, ...cutFields];
    const plan = compilePlan({
      ...(keepsHost ? {} : { host: { value: host } }),
      hostFallback: host,
      removeRequestFields: isAnonymous ? [...cuts, "Authorization"] : cuts,
      addRequestFields: [VIA_FIELD],
      stripPathBytes,
      prependPath,
      timeouts: { responseHeadMs, bodyIdleMs, totalMs, tunnelIdleMs: bodyIdleMs },
    });
    if (this.#plans.size >= PLANS_MAX) this.#plans.clear();
    this.#plans.set(key, plan);
    return plan;
  }
}
