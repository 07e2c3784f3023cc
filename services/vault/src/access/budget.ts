// Budgets of tenants: a token bucket for each, so that one tenant's load does not become everyone's.
import type { Clock } from "@platform/kernel/time";

/** Size of a budget. */
export interface BudgetOptions {
  /** Requests a second in the long run; 0 switches budgets off. */
  ratePerSecond: number;
  /** Requests at once after a rest. */
  burst: number;
  clock: Clock;
  /** Tenants kept; the one not seen for the longest time is forgotten first. Default 10 000. */
  tenantsMax?: number;
}

/** Counts requests by tenant. */
export class TenantBudgets {
  readonly #options: Required<BudgetOptions>;
  readonly #tenants = new Map<string, { tokens: number; atMs: number }>();

  constructor(options: BudgetOptions) {
    this.#options = { tenantsMax: 10_000, ...options };
  }

  /** Takes one request from a tenant's budget; the seconds to wait where there is nothing left, else 0. */
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
        // Only a full table pays for the order.
        this.#tenants.delete(tenant);
        this.#tenants.set(tenant, state);
      }
    }
    if (state.tokens < 1) return Math.max(1, Math.ceil((1 - state.tokens) / ratePerSecond));
    state.tokens -= 1;
    return 0;
  }
}
