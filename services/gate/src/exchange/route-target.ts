// One target of a compiled route.
import type { ForwardPlan, ForwardTarget, UpstreamPool } from "@platform/http1";
import { quoteJson } from "../access-log/access-line.ts";

/** Reason to forward a request with a different plan than others of its target; a sum of the values. */
export const PlanVariant = {
  plain: 0,
  /** Removes Authorization because it contains the operator token. */
  anonymous: 1,
  /** Without the client's conditions and range, to revalidate a stored response. */
  revalidation: 2,
} as const;

/** The plans of a target. */
export interface PlanSource {
  /** The plan of a sum of {@link PlanVariant}. */
  find(variant: number): ForwardPlan;
}

/** Options of {@link RouteTarget}. */
export interface RouteTargetOptions {
  index: number;
  slot: number;
  link: number;
  url: string;
  pool: UpstreamPool;
  plans: PlanSource;
}

/**
 * One target of a route. Tens of thousands of them are created by a reload, so parts that only some requests use are
 * created by the first of these.
 */
export class RouteTarget {
  readonly index: number;
  /** Slot in the shared active counts and target state. */
  readonly slot: number;
  /** Slot in the shared link state. */
  readonly link: number;
  readonly url: string;
  readonly #pool: UpstreamPool;
  readonly #plans: PlanSource;
  #urlJson = "";
  #plain: ForwardTarget | null = null;
  #others: (ForwardTarget | undefined)[] | null = null;

  constructor(options: RouteTargetOptions) {
    this.index = options.index;
    this.slot = options.slot;
    this.link = options.link;
    this.url = options.url;
    this.#pool = options.pool;
    this.#plans = options.plans;
  }

  /** The URL as a JSON string for the access log. */
  get urlJson(): string {
    if (this.#urlJson === "") this.#urlJson = quoteJson(this.url);
    return this.#urlJson;
  }

  /** The pool with the plan of a sum of {@link PlanVariant}. */
  findForward(variant: number): ForwardTarget {
    if (variant === PlanVariant.plain) return (this.#plain ??= this.#create(variant));
    this.#others ??= [];
    return (this.#others[variant] ??= this.#create(variant));
  }

  #create(variant: number): ForwardTarget {
    return { pool: this.#pool, plan: this.#plans.find(variant) };
  }
}
