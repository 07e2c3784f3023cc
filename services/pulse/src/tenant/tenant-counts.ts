// Statistics per tenant since startup.
import type { Tenant } from "../topic/name.ts";

/** Maximum number of tenants; the oldest entry is dropped and restarts at 0. */
const TENANTS_MAX = 10_000;

/** Statistics of one tenant. */
export interface TenantFigures {
  published: number;
  executions: number;
  executionErrors: number;
  executionNs: number;
  dropped: number;
}

const NOTHING: Readonly<TenantFigures> = {
  published: 0,
  executions: 0,
  executionErrors: 0,
  executionNs: 0,
  dropped: 0,
};

/** Statistics of all tenants. */
export class TenantCounts {
  readonly #byTenant = new Map<Tenant, TenantFigures>();

  /** The statistics of a tenant; zeros if there are none. */
  read(tenant: Tenant): Readonly<TenantFigures> {
    return this.#byTenant.get(tenant) ?? NOTHING;
  }

  addPublished(tenant: Tenant, count: number): void {
    this.#of(tenant).published += count;
  }

  addRun(tenant: Tenant, { durationNs, failed }: { durationNs: number; failed: boolean }): void {
    const figures = this.#of(tenant);
    figures.executions++;
    figures.executionNs += durationNs;
    if (failed) figures.executionErrors++;
  }

  addDropped(tenant: Tenant): void {
    this.#of(tenant).dropped++;
  }

  #of(tenant: Tenant): TenantFigures {
    const known = this.#byTenant.get(tenant);
    if (known !== undefined) return known;
    if (this.#byTenant.size >= TENANTS_MAX) {
      const first = this.#byTenant.keys().next();
      if (first.done !== true) this.#byTenant.delete(first.value);
    }
    const figures = { ...NOTHING };
    this.#byTenant.set(tenant, figures);
    return figures;
  }
}
