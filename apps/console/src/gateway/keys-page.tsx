// API keys of programs, and upstreams.
import { useState } from "preact/hooks";
import { formatDate, formatNumber } from "../format/format.ts";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action, TextField } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { ConfirmDialog, Dialog, FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { keyPath, loadRoutes, nameOf, type Target } from "./routes.ts";
import { TargetState } from "./routes-page.tsx";

interface ApiKey {
  id: string;
  tenant: string;
  name: string;
  rate_limit_rpm: number | null;
  routes: string[];
  created_at: string;
  revoked_at: string | null;
}

/** API keys. */
export function ApiKeysPage() {
  useCrumbs([{ label: t("Gateway") }, { label: t("API keys") }]);
  const [isCreating, setCreating] = useState(false);
  const [created, setCreated] = useState<string | undefined>(undefined);
  const [revoked, setRevoked] = useState<ApiKey | undefined>(undefined);
  const loaded = useLoad("keys", () => callService<ApiKey[]>("gate", "/admin/api-keys"));
  return (
    <Split>
      <Title
        actions={
          <Action onClick={() => setCreating(true)} kind="primary" icon="plus">
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
        <CreateKey
          onClose={() => setCreating(false)}
          onCreated={(secret) => {
            setCreated(secret);
            void loaded.reload();
          }}
        />
      )}
      {created !== undefined && (
        <Dialog title={t("New key")} onClose={() => setCreated(undefined)}>
          <div class="dialog-body">
            <p>{t("The secret is shown once.")}</p>
            <div class="cmd">
              <code>{created}</code>
              <CopyButton text={created} />
            </div>
          </div>
        </Dialog>
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

function CreateKey(props: { onClose: () => void; onCreated: (secret: string) => void }) {
  const [name, setName] = useState("");
  const [tenant, setTenant] = useState("");
  return (
    <FormDialog
      title={t("New key")}
      submit={t("Create")}
      onClose={props.onClose}
      onSubmit={async () => {
        const answer = await callService<{ key?: string; api_key?: string }>(
          "gate",
          "/admin/api-keys",
          {
            method: "POST",
            json: { name, tenant },
          },
        );
        props.onCreated(answer.key ?? answer.api_key ?? "");
      }}
    >
      <TextField label={t("Name")} value={name} onInput={setName} required />
      <TextField label={t("Tenant")} value={tenant} onInput={setTenant} required />
    </FormDialog>
  );
}

/** Targets of all routes. */
export function UpstreamsPage() {
  useCrumbs([{ label: t("Gateway") }, { label: t("Upstreams") }]);
  const loaded = useLoad(
    "upstreams",
    async () => {
      const found = new Map<string, { target: Target; routes: string[] }>();
      for (const route of await loadRoutes()) {
        for (const target of route.status.targets) {
          const known = found.get(target.url) ?? { target, routes: [] };
          known.routes.push(nameOf(route));
          found.set(target.url, known);
        }
      }
      return [...found.values()];
    },
    2_000,
  );
  return (
    <Split>
      <Title>{t("Upstreams")}</Title>
      <Loading of={loaded}>
        {(list) => (
          <Table
            label={t("Upstreams")}
            rows={list}
            idOf={({ target }) => target.url}
            columns={[
              { title: t("Target"), kind: "mono", render: ({ target }) => target.url },
              {
                title: t("Routes"),
                kind: "mono wide-only",
                render: ({ routes }) => <span class="i2">{routes.join(", ")}</span>,
              },
              {
                title: t("Active"),
                kind: "w-s",
                isNumber: true,
                render: ({ target }) => formatNumber(target.active),
              },
              {
                title: t("State"),
                kind: "w-m",
                render: ({ target }) => <TargetState target={target} />,
              },
            ]}
          />
        )}
      </Loading>
    </Split>
  );
}
