// /api/v1/admin/ai-billing and /api/v1/admin/ai-cost-attribution: what models have cost, and budgets of tenants.
import { PlatformError } from "@platform/kernel/errors";
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import { readUsd, toUsd } from "../ai/price/price-table.ts";
import type { AiBudgets, TenantBudget } from "../control/ai-budgets.ts";
import { type AiLedger, LEDGER_DAYS_MAX } from "../control/ai-ledger.ts";
import { ADJUSTMENT, type LedgerSums } from "../control/ledger-days.ts";
import { DAY_MS, readDay } from "../shared-state/index.ts";

const USD_MAX = 1_000_000_000;
const TOKENS_MAX = 1_000_000_000_000;
const DATE = /^\d{4}-\d{2}-\d{2}$/;

const tenantId = () =>
  z
    .string()
    .min(1)
    .max(256)
    .meta({ description: "claim `tenant`, tenant of an API key, or `anonymous`" });

const budgetSchema = z.strictObject({
  tenant_id: tenantId(),
  max_cost_per_day_usd: z.number().min(0).max(USD_MAX).nullish().meta({
    description: "USD per UTC day; 0: nothing; null or absent: no limit",
  }),
  max_tokens_per_minute: z.int().min(0).max(TOKENS_MAX).nullish().meta({
    description: "tokens in any 60 s over all AI routes; 0: nothing; null or absent: no limit",
  }),
  adjust_usd: z.number().min(-USD_MAX).max(USD_MAX).optional().meta({
    description:
      "added to what the tenant has spent today; together with `tenant_id` alone, the limits do not change",
  }),
});

const day = (what: string) =>
  z
    .string()
    .regex(DATE)
    .optional()
    .meta({ description: `${what} UTC day, such as 2026-11-30` });
const range = z.object({ from: day("first"), to: day("last") });

const spending = z.object({ tokens: z.int(), cost_usd: z.number() });
const budgetAnswer = z.object({
  tenant_id: z.string(),
  max_cost_per_day_usd: z.number().nullable(),
  max_tokens_per_minute: z.int().nullable(),
  spent_today_usd: z.number(),
  reserved_usd: z.number().meta({ description: "of requests that have not ended" }),
  resets_at: z.string().meta({ description: "end of the UTC day" }),
});

/** Sources of the figures and budgets. */
export interface AiBillingParts {
  readonly ledger: AiLedger;
  readonly budgets: AiBudgets;
  readonly readTimeMs: () => number;
}

/** Creates the routes of billing: summary, budgets, cost by route. */
export function createAiBillingRoutes(parts: AiBillingParts): ApiRoute[] {
  return [
    createSummary(parts),
    createUpsert(parts),
    createRemoval(parts),
    createAttribution(parts),
  ];
}

const OWN = { tag: "AI" } as const;
const BILLING_PATH = "/api/v1/admin/ai-billing";

function createSummary({ ledger, budgets, readTimeMs }: AiBillingParts): ApiRoute {
  return defineRoute({
    ...OWN,
    method: "GET",
    path: BILLING_PATH,
    summary: "Tokens and cost by tenant, and budgets",
    description: `Days are kept for ${LEDGER_DAYS_MAX} days. The figures of requests that have not ended are not included.`,
    query: range,
    answer: z.object({
      total_tokens: z.int(),
      total_cost_usd: z.number(),
      per_tenant: z.record(z.string(), spending),
      budgets: z.array(budgetAnswer),
    }),
    problems: { 400: "A day is invalid" },
    handle: async ({ query }) => {
      const tenants = new Map<string, { tokens: number; pico: bigint }>();
      for (const { tenant, tokens, pico } of await listSums(ledger, query, readTimeMs())) {
        const sum = tenants.get(tenant) ?? { tokens: 0, pico: 0n };
        sum.tokens += tokens;
        sum.pico += BigInt(pico);
        tenants.set(tenant, sum);
      }
      const all = [...tenants.values()];
      return {
        total_tokens: all.reduce((sum, { tokens }) => sum + tokens, 0),
        total_cost_usd: toUsd(all.reduce((sum, { pico }) => sum + pico, 0n)),
        per_tenant: Object.fromEntries(
          [...tenants].map(([tenant, { tokens, pico }]) => [
            tenant,
            { tokens, cost_usd: toUsd(pico) },
          ]),
        ),
        budgets: budgets.list().map((budget) => describe(budget, ledger, readTimeMs())),
      };
    },
  });
}

function createUpsert({ ledger, budgets, readTimeMs }: AiBillingParts): ApiRoute {
  return defineRoute({
    ...OWN,
    method: "POST",
    path: BILLING_PATH,
    summary: "Set the budget of a tenant, or correct what it has spent today",
    body: budgetSchema,
    answer: budgetAnswer,
    problems: {
      400: "The budget is invalid",
      409: "There are too many budgets",
      507: "The disk is full",
    },
    handle: async ({ body }) => {
      const { tenant_id: tenant, adjust_usd: adjustment } = body;
      const cost = body.max_cost_per_day_usd ?? null;
      const tokens = body.max_tokens_per_minute ?? null;
      const isCorrection =
        adjustment !== undefined &&
        body.max_cost_per_day_usd === undefined &&
        body.max_tokens_per_minute === undefined;
      if (!isCorrection)
        await budgets.set({
          tenant_id: tenant,
          max_cost_per_day_usd: cost,
          max_tokens_per_minute: tokens,
        });
      ledger.refresh();
      if (adjustment !== undefined) await ledger.adjust(tenant, readUsd(adjustment));
      const unlimited = {
        tenant_id: tenant,
        max_cost_per_day_usd: null,
        max_tokens_per_minute: null,
      };
      return describe(budgets.find(tenant) ?? unlimited, ledger, readTimeMs());
    },
  });
}

function createRemoval({ budgets }: AiBillingParts): ApiRoute {
  return defineRoute({
    ...OWN,
    method: "DELETE",
    path: BILLING_PATH,
    summary: "Remove the budget of a tenant; its figures stay",
    query: z.object({ tenant_id: tenantId() }),
    answer: z.object({ status: z.string(), tenant_id: z.string() }),
    problems: { 404: "The tenant has no budget", 507: "The disk is full" },
    handle: async ({ query: { tenant_id: tenant } }) => {
      await budgets.remove(tenant);
      return { status: "removed", tenant_id: tenant };
    },
  });
}

function createAttribution({ ledger, readTimeMs }: AiBillingParts): ApiRoute {
  const sums = { total_tokens: z.int(), total_cost_usd: z.number(), estimated_savings: z.number() };
  return defineRoute({
    ...OWN,
    method: "GET",
    path: "/api/v1/admin/ai-cost-attribution",
    summary: "Tokens, cost and savings by route",
    query: range,
    answer: z.object({
      routes: z.array(z.object({ prefix: z.string(), ...sums })),
      summary: z.object({ ...sums, savings_percent: z.number() }),
    }),
    problems: { 400: "A day is invalid" },
    handle: async ({ query }) => {
      const routes = new Map<string, { tokens: number; pico: bigint; saved: bigint }>();
      for (const { route, tokens, pico, saved } of await listSums(ledger, query, readTimeMs())) {
        if (route === ADJUSTMENT) continue;
        const sum = routes.get(route) ?? { tokens: 0, pico: 0n, saved: 0n };
        sum.tokens += tokens;
        sum.pico += BigInt(pico);
        sum.saved += BigInt(saved);
        routes.set(route, sum);
      }
      const all = [...routes].map(([prefix, { tokens, pico, saved }]) => ({
        prefix,
        total_tokens: tokens,
        total_cost_usd: toUsd(pico),
        estimated_savings: toUsd(saved),
      }));
      const pico = [...routes.values()].reduce((sum, one) => sum + one.pico, 0n);
      const saved = [...routes.values()].reduce((sum, one) => sum + one.saved, 0n);
      return {
        routes: all,
        summary: {
          total_tokens: all.reduce((sum, one) => sum + one.total_tokens, 0),
          total_cost_usd: toUsd(pico),
          estimated_savings: toUsd(saved),
          savings_percent: sharePercent(saved, pico + saved),
        },
      };
    },
  });
}

function sharePercent(part: bigint, whole: bigint): number {
  return whole === 0n ? 0 : Number((part * 10_000n) / whole) / 100;
}

async function listSums(
  ledger: AiLedger,
  { from, to }: z.infer<typeof range>,
  nowMs: number,
): Promise<LedgerSums[]> {
  const today = readDay(nowMs);
  const first = readDate(from, "from") ?? today - LEDGER_DAYS_MAX;
  const last = readDate(to, "to") ?? today;
  const days = await ledger.listDays(first, Math.min(last, today));
  return days.flatMap(({ sums }) => sums);
}

function readDate(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  const ms = Date.parse(`${text}T00:00:00Z`);
  const isValid = Number.isFinite(ms) && new Date(ms).toISOString().startsWith(text);
  if (!isValid) throw new PlatformError("validation_failed", `${name}: expected a day.`);
  return readDay(ms);
}

function describe(
  budget: TenantBudget,
  ledger: AiLedger,
  nowMs: number,
): z.infer<typeof budgetAnswer> {
  const today = readDay(nowMs);
  const { tenant_id: tenant } = budget;
  return {
    ...budget,
    spent_today_usd: toUsd(ledger.days.readSpent(tenant, today)),
    reserved_usd: toUsd(ledger.readReserved(tenant, today)),
    resets_at: new Date((today + 1) * DAY_MS).toISOString(),
  };
}
