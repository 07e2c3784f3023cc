// Compiled forwarding plans, shared by all targets that are rewritten in the same way.
import { compilePlan, type ForwardPlan, type ForwardPlanOptions } from "@platform/http1";

/** Plans that are remembered; what is past it is compiled again, not shared. */
const PLANS_MAX = 4_096;

/** Remembers plans by their options: ten thousand routes need few of them. */
export class PlanCache {
  readonly #plans = new Map<string, ForwardPlan>();

  /** The plan for the options. Throws as `compilePlan` does. */
  compile(options: ForwardPlanOptions): ForwardPlan {
    const key = JSON.stringify(options);
    const known = this.#plans.get(key);
    if (known !== undefined) return known;
    const plan = compilePlan(options);
    if (this.#plans.size >= PLANS_MAX) this.#plans.clear();
    this.#plans.set(key, plan);
    return plan;
  }
}
