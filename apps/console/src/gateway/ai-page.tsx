// Traffic to models: cost, tokens and budgets by tenant, cost and savings by route, and the guards of each AI route.
import { useState } from "preact/hooks";
import { withQuery } from "../api/api.ts";
import type { Answer } from "../contract/answer.ts";
import { formatNumber, splitFigure } from "../format/format.ts";
import { feeds } from "../live/live.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, Section, Segments } from "../view/controls.tsx";
import { ConfirmDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { t } from "../words/words.ts";
import { BudgetDialog, type Budget } from "./ai-budget-dialog.tsx";
import { AiRoutes, ModelRoutes, Tenants, type Billing } from "./ai-tables.tsx";
import { formatUsd } from "./money.ts";
import { CHANGE, loadRoutes } from "./routes.ts";

const EVERY_MS = 10_000;
const DAY_MS = 86_400_000;
const RANGES = ["today", "7", "30", "all"] as const;

type Attribution = Answer<"gate", "GET /admin/ai-cost-attribution">;
type Open = { kind: "set" | "remove"; budget: Budget | undefined } | undefined;

/** Cost, tokens, budgets and guards of models. */
export function AiPage() {
  useCrumbs([{ label: t("Gateway") }, { label: t("Models") }]);
  const range = RANGES.find((one) => one === queryValue("range")) ?? "today";
  const from = findFirstDay(range);
  const [open, setOpen] = useState<Open>(undefined);
  const billing = useLoad(
    `billing ${from ?? ""}`,
    () => callService<Billing>("gate", withQuery("/admin/ai-billing", { from })),
    EVERY_MS,
  );
  const costs = useLoad(
    `attribution ${from ?? ""}`,
    () => callService<Attribution>("gate", withQuery("/admin/ai-cost-attribution", { from })),
    EVERY_MS,
  );
  const close = (): void => setOpen(undefined);
  return (
    <Split pane={<Side costs={costs.data.value} />}>
      <Title
        actions={
          <Action needs={CHANGE} onClick={() => setOpen({ kind: "set", budget: undefined })}>
            {t("Set a budget…")}
          </Action>
        }
      >
        {t("Models")}
      </Title>
      <div class="bar">
        <Segments
          label={t("Time")}
          value={range}
          options={[
            ["today", t("Today (UTC)")],
            ["7", t("7 days")],
            ["30", t("30 days")],
            ["all", t("All kept days")],
          ]}
          onChange={(value) => setQuery({ range: value === "today" ? undefined : value })}
        />
      </div>
      <Section title={t("Tenants")}>
        <Loading of={billing}>
          {(found) => (
            <Tenants
              billing={found}
              onSet={(budget) => setOpen({ kind: "set", budget })}
              onRemove={(budget) => setOpen({ kind: "remove", budget })}
            />
          )}
        </Loading>
      </Section>
      <Section title={t("Routes")}>
        <Loading of={costs}>{(found) => <ModelRoutes items={found.routes} />}</Loading>
      </Section>
      <Guards />
      <Dialogs open={open} onClose={close} onChanged={() => billing.reload()} />
    </Split>
  );
}

function Guards() {
  const routes = useLoad("ai routes", async () =>
    (await loadRoutes()).filter((route) => route["ai"] === true),
  );
  return (
    <Section title={t("Guards and fallback")}>
      <Loading of={routes}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={t("No AI route")}>
              <p>{t("Set ai on a route whose target is an API of models.")}</p>
            </Empty>
          ) : (
            <AiRoutes routes={list} />
          )
        }
      </Loading>
    </Section>
  );
}

/** The first UTC day of a range; undefined for all. */
function findFirstDay(range: (typeof RANGES)[number]): string | undefined {
  if (range === "all") return undefined;
  const days = range === "today" ? 0 : Number(range) - 1;
  return new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);
}

function Dialogs(props: { open: Open; onClose: () => void; onChanged: () => Promise<void> }) {
  const { open, onClose, onChanged } = props;
  if (open === undefined) return null;
  const { kind, budget } = open;
  if (kind === "set" || budget === undefined) {
    return <BudgetDialog budget={budget} onClose={onClose} onSaved={onChanged} />;
  }
  const { tenant_id: tenant } = budget;
  return (
    <ConfirmDialog
      title={t("Remove the budget of {name}", { name: tenant })}
      name={tenant}
      submit={t("Remove")}
      onClose={onClose}
      onSubmit={async () => {
        const path = withQuery("/admin/ai-billing", { tenant_id: tenant });
        await callService("gate", path, { method: "DELETE" });
        await onChanged();
      }}
    >
      <p>{t("Its requests are no longer limited. What it has spent stays counted.")}</p>
    </ConfirmDialog>
  );
}

/** Figures of now, and the sums of the range. */
function Side({ costs }: { costs: Attribution | undefined }) {
  const feed = feeds.value.get("gate");
  const names: [name: string, label: string][] = [
    ["ai_tokens", t("Tokens")],
    ["ai_cost_today", t("Cost today, with what is reserved")],
    ["ai_hit_ratio", t("Stored answers")],
    ["ai_blocked", t("Refused prompts")],
  ];
  const summary = costs?.summary;
  return (
    <>
      <Section title={t("Now")}>
        <Facts>
          {names.map(([name, label]) => {
            const info = feed?.figures.find((figure) => figure.name === name);
            const [value, unit] = splitFigure(feed?.values[name] ?? null, info?.unit ?? "");
            return (
              <FactRow key={name} term={label}>
                {`${value} ${unit}`.trim()}
              </FactRow>
            );
          })}
        </Facts>
      </Section>
      {summary !== undefined && (
        <Section title={t("Chosen days")}>
          <Facts>
            <FactRow term={t("Tokens")}>{formatNumber(summary.total_tokens)}</FactRow>
            <FactRow term={t("Cost")}>{formatUsd(summary.total_cost_usd)}</FactRow>
            <FactRow term={t("Savings")}>
              {`${formatUsd(summary.estimated_savings)} (${formatNumber(summary.savings_percent)} %)`}
            </FactRow>
          </Facts>
          <p class="i3">
            {t("Savings: stored answers, and answers of the primary at the price of the fallback.")}
          </p>
        </Section>
      )}
    </>
  );
}
