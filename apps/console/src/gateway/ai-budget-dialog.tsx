// The budget of a tenant for models.
import { useState } from "preact/hooks";
import type { Answer } from "../contract/answer.ts";
import { callService } from "../session/session.ts";
import { TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { t } from "../words/words.ts";

/** A budget with what was spent. */
export type Budget = Answer<"gate", "GET /admin/ai-billing">["budgets"][number];

/** Sets a budget; without one, for a tenant whose name is typed. */
export function BudgetDialog(props: {
  budget: Budget | undefined;
  onClose: () => void;
  onSaved: () => Promise<void>;
}) {
  const { budget } = props;
  const [tenant, setTenant] = useState(budget?.tenant_id ?? "");
  const [cost, setCost] = useState(toText(budget?.max_cost_per_day_usd));
  const [tokens, setTokens] = useState(toText(budget?.max_tokens_per_minute));
  return (
    <FormDialog
      title={t("Budget of a tenant")}
      submit={t("Save")}
      onClose={props.onClose}
      onSubmit={async () => {
        const json = {
          tenant_id: tenant,
          max_cost_per_day_usd: toLimit(cost),
          max_tokens_per_minute: toLimit(tokens),
        };
        await callService("gate", "/admin/ai-billing", { method: "POST", json });
        await props.onSaved();
      }}
    >
      <TextField label={t("Tenant")} name="tenant_id" value={tenant} onInput={setTenant} required />
      <TextField
        label={t("USD per day (UTC)")}
        name="max_cost_per_day_usd"
        value={cost}
        onInput={setCost}
        isMono
        hint={t("Empty: no limit. 0: nothing.")}
      />
      <TextField
        label={t("Tokens in any minute")}
        name="max_tokens_per_minute"
        value={tokens}
        onInput={setTokens}
        isMono
      />
    </FormDialog>
  );
}

function toText(limit: number | null | undefined): string {
  return limit === null || limit === undefined ? "" : String(limit);
}

// Other text is sent as it is: the gateway says what it expects.
function toLimit(text: string): number | string | null {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  const value = Number(trimmed);
  return Number.isFinite(value) ? value : trimmed;
}
