// Addresses that receive no mail: why, and what reactivating one means.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { segment, withQuery } from "../api/api.ts";
import { formatMoment } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, SelectField, TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { NextPage } from "../view/next-page.tsx";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { MANAGE } from "./message.ts";

const PAGE = 100;

type Suppressed = Answer<"notify", "GET /suppression">["addresses"][number];

function reasons(): readonly (readonly [reason: string, label: string])[] {
  return [
    ["manual", t("by hand")],
    ["unsubscribe", t("unsubscribed")],
    ["complaint", t("complaint")],
    ["hard_bounce", t("does not exist")],
  ];
}

function labelOf(reason: string): string {
  return reasons().find(([one]) => one === reason)?.[1] ?? reason;
}

function consequenceOf(reason: string): string {
  switch (reason) {
    case "hard_bounce":
      return t(
        "Its server said that the address does not exist. If that is still so, the next mail bounces, which harms the reputation of your domain.",
      );
    case "complaint":
      return t(
        "Its owner reported a mail as spam. Another report harms the delivery of all your mail: reactivate it only if the owner asks for it.",
      );
    case "unsubscribe":
      return t(
        "Its owner unsubscribed from bulk mail. The law may require a new consent before you send bulk mail again.",
      );
    default:
      return t("It was added by hand.");
  }
}

export function SuppressionPage() {
  useCrumbs([{ label: t("Mail") }, { label: t("Suppression") }]);
  const [isAdding, setAdding] = useState(false);
  const [chosen, setChosen] = useState<Suppressed | undefined>(undefined);
  const cursor = queryValue("cursor");
  const reason = queryValue("reason");
  const loaded = useLoad(`suppression ${cursor} ${reason}`, () =>
    callService<Answer<"notify", "GET /suppression">>(
      "notify",
      withQuery("/suppression", { limit: PAGE, cursor, reason }),
    ),
  );
  useCommands([
    {
      label: t("Suppress an address"),
      key: "n",
      icon: "plus",
      needs: MANAGE,
      run: () => setAdding(true),
    },
  ]);
  return (
    <Split>
      <h1 class="hidden">{t("Suppression")}</h1>
      <div class="bar">
        <span class="lead grow">{t("Addresses that receive no mail.")}</span>
        <select
          class="field small"
          aria-label={t("Reason")}
          value={reason}
          onChange={(event) => setQuery({ reason: event.currentTarget.value, cursor: undefined })}
        >
          <option value="">{t("All reasons")}</option>
          {reasons().map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
        <Action onClick={() => setAdding(true)} needs={MANAGE} kind="primary" icon="plus">
          {t("Add an address")}
        </Action>
      </div>
      <Loading of={loaded}>
        {({ addresses, next_cursor: next }) => (
          <>
            {addresses.length === 0 && <Empty title={t("No address is suppressed")} />}
            {addresses.length > 0 && (
              <Table
                label={t("Suppression")}
                rows={addresses}
                idOf={({ email }) => email}
                columns={[
                  { title: t("Address"), kind: "mono", render: ({ email }) => email },
                  { title: t("Reason"), kind: "w-m", render: (one) => labelOf(one.reason) },
                  {
                    title: t("Since"),
                    kind: "w-l wide-only",
                    render: ({ suppressed_at: at }) => formatMoment(at),
                  },
                  {
                    title: t("Actions"),
                    kind: "w-m num",
                    render: (one) => (
                      <Action onClick={() => setChosen(one)} needs={MANAGE} kind="quiet">
                        {t("Reactivate…")}
                      </Action>
                    ),
                  },
                ]}
              />
            )}
            <NextPage cursor={next} />
          </>
        )}
      </Loading>
      {isAdding && <AddAddress onClose={() => setAdding(false)} onSaved={() => loaded.reload()} />}
      {chosen !== undefined && (
        <FormDialog
          title={t("Reactivate {name}", { name: chosen.email })}
          submit={t("Reactivate")}
          onClose={() => setChosen(undefined)}
          onSubmit={async () => {
            await callService("notify", `/suppression/${segment(chosen.email)}`, {
              method: "DELETE",
            });
            say(t("{name} receives mail again.", { name: chosen.email }));
            await loaded.reload();
          }}
        >
          <p>{consequenceOf(chosen.reason)}</p>
          <p>
            {t(
              "Mail to it is delivered again immediately, bulk mail too. A new bounce or complaint suppresses it again.",
            )}
          </p>
        </FormDialog>
      )}
    </Split>
  );
}

function AddAddress(props: { onClose: () => void; onSaved: () => Promise<void> }) {
  const [email, setEmail] = useState("");
  const [reason, setReason] = useState("manual");
  return (
    <FormDialog
      title={t("Add an address")}
      submit={t("Add")}
      onClose={props.onClose}
      onSubmit={async () => {
        await callService("notify", "/suppression", { method: "POST", json: { email, reason } });
        await props.onSaved();
      }}
    >
      <TextField label={t("Address")} value={email} onInput={setEmail} type="email" required />
      <SelectField label={t("Reason")} value={reason} options={reasons()} onChange={setReason} />
    </FormDialog>
  );
}
