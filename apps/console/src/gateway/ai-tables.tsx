// Tables of traffic to models: tenants with their budgets, cost by route, and the settings of AI routes.
import type { Answer } from "../contract/answer.ts";
import { formatNumber } from "../format/format.ts";
import { href } from "../router/router.ts";
import { Action } from "../view/controls.tsx";
import { Empty } from "../view/pane.tsx";
import { State } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import type { Budget } from "./ai-budget-dialog.tsx";
import { formatUsd } from "./money.ts";
import { CHANGE, nameOf, routePath, type Route } from "./routes.ts";

/** Tokens, cost and budgets by tenant. */
export type Billing = Answer<"gate", "GET /admin/ai-billing">;
type RouteCost = Answer<"gate", "GET /admin/ai-cost-attribution">["routes"][number];

interface TenantRow {
  tenant: string;
  tokens: number;
  usd: number;
  budget: Budget | undefined;
}

/** Tenants with what they have spent, and their budgets. */
export function Tenants(props: {
  billing: Billing;
  onSet: (budget: Budget) => void;
  onRemove: (budget: Budget) => void;
}) {
  const rows = listTenants(props.billing);
  if (rows.length === 0) {
    return (
      <Empty title={t("No request to a model in these days")}>
        <p>{t("A budget limits a tenant before its first request, too.")}</p>
      </Empty>
    );
  }
  return (
    <Table
      label={t("Tenants")}
      rows={rows}
      idOf={({ tenant }) => tenant}
      columns={[
        {
          title: t("Tenant"),
          sort: ({ tenant }) => tenant,
          render: ({ tenant }) => <b title={tenant}>{tenant}</b>,
        },
        {
          title: t("Tokens"),
          kind: "w-m wide-only",
          isNumber: true,
          sort: ({ tokens }) => tokens,
          render: ({ tokens }) => formatNumber(tokens),
        },
        {
          title: t("Cost"),
          kind: "w-s",
          isNumber: true,
          sort: ({ usd }) => usd,
          render: ({ usd }) => formatUsd(usd),
        },
        { title: t("Budget today"), kind: "w-l", render: ({ budget }) => describeBudget(budget) },
        {
          title: t("Actions"),
          kind: "w-l wide-only",
          render: ({ budget }) => budget !== undefined && <BudgetActions {...props} of={budget} />,
        },
      ]}
    />
  );
}

function BudgetActions(props: {
  of: Budget;
  onSet: (budget: Budget) => void;
  onRemove: (budget: Budget) => void;
}) {
  const { of, onSet, onRemove } = props;
  return (
    <span class="acts">
      <Action needs={CHANGE} kind="quiet" onClick={() => onSet(of)}>
        {t("Change…")}
      </Action>
      <Action needs={CHANGE} kind="quiet" onClick={() => onRemove(of)}>
        {t("Remove…")}
      </Action>
    </span>
  );
}

function listTenants({ per_tenant: spent, budgets }: Billing): TenantRow[] {
  const names = new Set([...Object.keys(spent), ...budgets.map((one) => one.tenant_id)]);
  return [...names].toSorted().map((tenant) => ({
    tenant,
    tokens: spent[tenant]?.tokens ?? 0,
    usd: spent[tenant]?.cost_usd ?? 0,
    budget: budgets.find((one) => one.tenant_id === tenant),
  }));
}

function describeBudget(budget: Budget | undefined) {
  if (budget === undefined) return <span class="i3">{t("no limit")}</span>;
  const { max_cost_per_day_usd: most, max_tokens_per_minute: tokens } = budget;
  const used = budget.spent_today_usd + budget.reserved_usd;
  const isUsed = most !== null && used >= most;
  const parts = [
    ...(most === null ? [] : [`${formatUsd(used)} / ${formatUsd(most)}`]),
    ...(tokens === null ? [] : [t("{n} tokens a minute", { n: formatNumber(tokens) })]),
  ];
  const text = parts.length === 0 ? t("no limit") : parts.join(", ");
  return (
    <State kind={isUsed ? "bad" : "ok"}>
      <span title={text}>{text}</span>
    </State>
  );
}

/** Cost and savings by route. */
export function ModelRoutes({ items }: { items: readonly RouteCost[] }) {
  if (items.length === 0) return <Empty title={t("No request to a model in these days")} />;
  return (
    <Table
      label={t("Cost by route")}
      rows={items}
      idOf={({ prefix }) => prefix}
      columns={[
        { title: t("Route"), kind: "mono", render: ({ prefix }) => prefix },
        {
          title: t("Tokens"),
          kind: "w-m wide-only",
          isNumber: true,
          render: ({ total_tokens: tokens }) => formatNumber(tokens),
        },
        {
          title: t("Cost"),
          kind: "w-s",
          isNumber: true,
          render: ({ total_cost_usd: usd }) => formatUsd(usd),
        },
        {
          title: t("Savings"),
          kind: "w-s",
          isNumber: true,
          render: ({ estimated_savings: usd }) => formatUsd(usd),
        },
      ]}
    />
  );
}

/** AI routes, with what guards and answers them. */
export function AiRoutes({ routes }: { routes: readonly Route[] }) {
  return (
    <Table
      label={t("AI routes")}
      rows={routes}
      idOf={nameOf}
      columns={[
        {
          title: t("Route"),
          kind: "mono",
          render: (route) => <a href={href(routePath(route))}>{nameOf(route)}</a>,
        },
        { title: t("Prompt guard"), kind: "w-m wide-only", render: describeGuard },
        { title: t("Personal data"), kind: "w-m wide-only", render: describePii },
        {
          title: t("Stored answers"),
          kind: "w-m wide-only",
          render: (route) => onOff(isOn(route, "semantic_cache", "enable_semantic_cache")),
        },
        { title: t("Fallback"), kind: "w-l mono", render: describeFallback },
      ]}
    />
  );
}

function isOn(route: Route, ...names: string[]): boolean {
  return names.some((name) => route[name] === true);
}

function onOff(on: boolean) {
  return <State kind={on ? "ok" : "off"}>{on ? t("on") : t("off")}</State>;
}

function describeGuard(route: Route) {
  if (!isOn(route, "prompt_guard", "enable_prompt_guard")) return onOff(false);
  const reports = route["prompt_guard_action"] === "report";
  return <State kind={reports ? "warn" : "ok"}>{reports ? t("reports") : t("blocks")}</State>;
}

function describePii(route: Route) {
  if (!isOn(route, "pii_redact")) return onOff(false);
  const isReversible = route["pii_mode"] === "reversible";
  return <State kind="ok">{isReversible ? t("replaced and restored") : t("replaced")}</State>;
}

function describeFallback(route: Route) {
  const routing = route["llm_routing"] as { fallback?: { model?: unknown } } | null | undefined;
  const model = routing?.fallback?.model;
  return typeof model === "string" ? <span title={model}>{model}</span> : "–";
}
