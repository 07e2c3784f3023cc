// API keys of programs.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { formatDate, formatNumber } from "../format/format.ts";
import { callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, TextField } from "../view/controls.tsx";
import { ConfirmDialog, FormDialog, STAY_OPEN } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { SecretDialog } from "../view/secret.tsx";
import { State } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { CHANGE, keyPath } from "./routes.ts";

type ApiKey = Answer<"gate", "GET /admin/api-keys">[number];

export function ApiKeysPage() {
  useCrumbs([{ label: t("Gateway") }, { label: t("API keys") }]);
  const [isCreating, setCreating] = useState(false);
  const [revoked, setRevoked] = useState<ApiKey | undefined>(undefined);
  const loaded = useLoad("keys", () =>
    callService<Answer<"gate", "GET /admin/api-keys">>("gate", "/admin/api-keys"),
  );
  useCommands([
    {
      label: t("New API key"),
      key: "n",
      icon: "plus",
      needs: CHANGE,
      run: () => setCreating(true),
    },
  ]);
  return (
    <Split>
      <Title
        actions={
          <Action onClick={() => setCreating(true)} needs={CHANGE} kind="primary" icon="plus">
            {t("New key")}
          </Action>
        }
      >
        {t("API keys")}
      </Title>
      <Loading of={loaded}>
        {(keys) =>
          keys.length === 0 ? (
            <Empty title={t("No keys yet")}>
              <p>{t("A key lets a program call routes that require one.")}</p>
            </Empty>
          ) : (
            <Table
              label={t("API keys")}
              rows={keys}
              isTall
              idOf={({ id }) => id}
              columns={[
                {
                  title: t("Name"),
                  render: ({ id, name }) => (
                    <span class="two">
                      <b>{name}</b>
                      <small class="mono">{id}</small>
                    </span>
                  ),
                },
                { title: t("Tenant"), kind: "w-m wide-only", render: ({ tenant }) => tenant },
                {
                  title: t("Requests a minute"),
                  kind: "w-m wide-only",
                  isNumber: true,
                  render: ({ rate_limit_rpm: limit }) =>
                    limit === null ? "–" : formatNumber(limit),
                },
                {
                  title: t("Created"),
                  kind: "w-s wide-only",
                  isNumber: true,
                  render: ({ created_at: at }) => formatDate(at),
                },
                {
                  title: t("State"),
                  kind: "w-m",
                  render: (key) =>
                    key.revoked_at === null ? (
                      <Action onClick={() => setRevoked(key)} kind="bad">
                        {t("Revoke…")}
                      </Action>
                    ) : (
                      <State kind="off">{t("Revoked")}</State>
                    ),
                },
              ]}
            />
          )
        }
      </Loading>
      {isCreating && (
        <NewApiKey onClose={() => setCreating(false)} onCreated={() => void loaded.reload()} />
      )}
      {revoked !== undefined && (
        <ConfirmDialog
          title={t("Revoke {name}", { name: revoked.name })}
          name={revoked.name}
          submit={t("Revoke")}
          onClose={() => setRevoked(undefined)}
          onSubmit={async () => {
            await callService("gate", keyPath(revoked.id), { method: "DELETE" });
            await loaded.reload();
          }}
        >
          <p>{t("Programs that use it are refused immediately.")}</p>
        </ConfirmDialog>
      )}
    </Split>
  );
}

/** Creates a key, and shows it once. */
export function NewApiKey(props: { onClose: () => void; onCreated?: () => void }) {
  const [name, setName] = useState("");
  const [tenant, setTenant] = useState("");
  const [secret, setSecret] = useState<string | undefined>(undefined);
  if (secret !== undefined) {
    return <SecretDialog title={t("New key")} values={[secret]} onClose={props.onClose} />;
  }
  return (
    <FormDialog
      title={t("New key")}
      submit={t("Create")}
      createsSecret
      onClose={props.onClose}
      onSubmit={async () => {
        const path = "/admin/api-keys";
        const json = { name, tenant };
        const { key } = await callService<Answer<"gate", "POST /admin/api-keys">>("gate", path, {
          method: "POST",
          json,
        });
        setSecret(key);
        props.onCreated?.();
        return STAY_OPEN;
      }}
    >
      <TextField label={t("Name")} value={name} onInput={setName} required />
      <TextField label={t("Tenant")} value={tenant} onInput={setTenant} required />
    </FormDialog>
  );
}
