// Budgets of tenants at models: stored, and sent to all workers before a change is acknowledged.
import { join } from "node:path";
import { PlatformError } from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import { z } from "zod";
import { createEphemeralState, createStateFile, type StateFile } from "../access/state-file.ts";
import { readUsd } from "../ai/price/price-table.ts";
import type { AiBudget } from "../shared-state/index.ts";

/** Most tenants with a budget. */
const AI_BUDGETS_MAX = 10_000;

const storedSchema = z.array(
  z.object({
    tenant_id: z.string(),
    max_cost_per_day_usd: z.number().nullable(),
    max_tokens_per_minute: z.number().nullable(),
  }),
);

/** The budget of a tenant; null: no limit. */
export type TenantBudget = z.infer<typeof storedSchema>[number];

/** Options of {@link AiBudgets}. */
export interface AiBudgetsOptions {
  readonly folder: string;
  /** Keeps changes in memory only. */
  readonly isEphemeral: boolean;
  readonly log: Logger;
  /** Runs work between two changes of the gateway. */
  readonly runExclusive: <T>(work: () => Promise<T>) => Promise<T>;
  /** Sends all budgets to every worker; resolves when all of them have applied them. */
  readonly apply: (budgets: readonly AiBudget[]) => Promise<void>;
}

/** The budgets of one gateway. */
export class AiBudgets {
  readonly #options: AiBudgetsOptions;
  readonly #file: StateFile<TenantBudget[]>;
  readonly #budgets = new Map<string, TenantBudget>();

  constructor(options: AiBudgetsOptions) {
    this.#options = options;
    const path = join(options.folder, "ai", "budgets.json");
    const file = createStateFile(path, storedSchema, (fault) =>
      options.log.warn("state repaired", { fault }),
    );
    this.#file = options.isEphemeral ? createEphemeralState(file) : file;
  }

  /** Reads what is stored. */
  async load(): Promise<void> {
    for (const budget of (await this.#file.read()) ?? [])
      this.#budgets.set(budget.tenant_id, budget);
  }

  /** True if the tenant has a budget. */
  has(tenant: string): boolean {
    return this.#budgets.has(tenant);
  }

  /** The budget of a tenant; undefined without one. */
  find(tenant: string): TenantBudget | undefined {
    return this.#budgets.get(tenant);
  }

  /** All budgets, by tenant. */
  list(): TenantBudget[] {
    return [...this.#budgets.values()];
  }

  /** All budgets for workers. */
  listForWorkers(): AiBudget[] {
    return this.list().map((budget) => ({
      tenant: budget.tenant_id,
      ...(budget.max_cost_per_day_usd === null
        ? {}
        : { maxPicoPerDay: readUsd(budget.max_cost_per_day_usd) }),
      ...(budget.max_tokens_per_minute === null
        ? {}
        : { maxTokensPerMinute: budget.max_tokens_per_minute }),
    }));
  }

  /** Sets the budget of a tenant. Throws `conflict` if there are {@link AI_BUDGETS_MAX}. */
  set(budget: TenantBudget): Promise<void> {
    return this.#change(() => {
      if (!this.#budgets.has(budget.tenant_id) && this.#budgets.size >= AI_BUDGETS_MAX)
        throw new PlatformError("conflict", `There are ${AI_BUDGETS_MAX} budgets already.`);
      this.#budgets.set(budget.tenant_id, budget);
    });
  }

  /** Removes the budget of a tenant. Throws `not_found` if it has none. */
  remove(tenant: string): Promise<void> {
    return this.#change(() => {
      if (!this.#budgets.delete(tenant))
        throw new PlatformError("not_found", "The tenant has no budget.");
    });
  }

  #change(edit: () => void): Promise<void> {
    return this.#options.runExclusive(async () => {
      const before = new Map(this.#budgets);
      edit();
      try {
        await this.#file.write(this.list());
        await this.#options.apply(this.listForWorkers());
      } catch (error) {
        this.#budgets.clear();
        for (const [tenant, budget] of before) this.#budgets.set(tenant, budget);
        throw error;
      }
    });
  }
}
