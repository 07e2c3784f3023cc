// Request budgets of tenants: a token bucket for each, so that the load of one does not affect the others.
import type { Clock } from "@platform/kernel/time";

/** Parameters of a budget. */
export interface BudgetOptions {
  /** Sustained rate; 0 disables budgets. */
  ratePerSecond: number;
  /** Burst size. */
  burst: number;
  clock: Clock;
  /** Tenants in memory; the least recently used is dropped first. Default 10 000. */
  tenantsMax?: number;
}

/** Counts requests by tenant. */
export class TenantBudgets {
  readonly #options: Required<BudgetOptions>;
  readonly #tenants = new Map<string, { tokens: number; atMs: number }>();

  constructor(options: BudgetOptions) {
    this.#options = { tenantsMax: 10_000, ...options };
  }

  /** Takes one request from a tenant's budget. Returns 0, or the seconds to wait if the budget is used up. */
  take(tenant: string): number {
    const { ratePerSecond, burst, clock, tenantsMax } = this.#options;
    if (ratePerSecond === 0) return 0;
    const nowMs = clock.monotonicMs();
    let state = this.#tenants.get(tenant);
    if (state === undefined) {
      if (this.#tenants.size >= tenantsMax) {
        this.#tenants.delete(this.#tenants.keys().next().value ?? tenant);
      }
      state = { tokens: burst, atMs: nowMs };
      this.#tenants.set(tenant, state);
    } else {
      state.tokens = Math.min(burst, state.tokens + ((nowMs - state.atMs) / 1000) * ratePerSecond);
      state.atMs = nowMs;
      if (this.#tenants.size >= tenantsMax) {
        // Only a full table pays for keeping the order.
        this.#tenants.delete(tenant);
        this.#tenants.set(tenant, state);
      }
    }
    if (state.tokens < 1) return Math.max(1, Math.ceil((1 - state.tokens) / ratePerSecond));
    state.tokens -= 1;
    return 0;
  }
}
