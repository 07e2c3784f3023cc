// OAuth clients: programs that sign users in or act for themselves.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { segment, withQuery } from "../api/api.ts";
import { onlyIf, readVersioned } from "../api/versioned.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { api, callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, AreaField, FactRow, Facts, Section, TextField } from "../view/controls.tsx";
import { ConfirmDialog, FormDialog, STAY_OPEN } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { NextPage } from "../view/next-page.tsx";
import { Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { SecretDialog } from "../view/secret.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { useChosen } from "./chosen.tsx";
import { ClientLogo } from "./client-logo.tsx";

const PAGE = 100;

type Client = Answer<"auth", "GET /auth/clients/{id}">;

/** Answer that contains the secret of a client, once. */
type ClientSecret = Answer<"auth", "POST /auth/clients/{id}/secret">;

/** OAuth clients: programs that sign users in or act for themselves. */
export function ClientsPage() {
  useCrumbs([{ label: t("Identity") }, { label: t("Clients") }]);
  const [open, setOpen] = useState<"create" | "edit" | "secret" | "delete" | undefined>(undefined);
  const [secret, setSecret] = useState<ClientSecret | undefined>(undefined);
  const cursor = queryValue("cursor");
  const loaded = useLoad(`clients ${cursor}`, () =>
    callService<Answer<"auth", "GET /auth/clients">>(
      "auth",
      withQuery("/auth/clients", { limit: PAGE, cursor }),
    ),
  );
  const selected = queryValue("sel");
  const { item: client, notice } = useChosen({
    id: selected,
    page: loaded.data.value?.clients,
    idOf: ({ client_id: id }) => id,
    read: (signal) => callService<Client>("auth", `/auth/clients/${segment(selected)}`, { signal }),
    whole: { to: "/identity/clients", label: t("All clients") },
  });
  const path = `/auth/clients/${segment(client?.client_id ?? "")}`;
  const close = (): void => setOpen(undefined);
  useCommands([
    {
      label: t("New client"),
      key: "n",
      icon: "plus",
      needs: "clients:write",
      run: () => setOpen("create"),
    },
  ]);
  return (
    <Split
      pane={
        client === undefined ? (
          notice
        ) : (
          <>
            <Section title={client.client_name ?? client.client_id}>
              <Facts>
                <FactRow term="client_id" isMono>
                  {client.client_id}
                </FactRow>
                <FactRow term={t("Grants")} isMono>
                  {client.grant_types.join(", ")}
                </FactRow>
                <FactRow term={t("Redirects")} isMono>
                  {client.redirect_uris.join(", ") || "–"}
                </FactRow>
                <FactRow term={t("Scopes")}>
                  <span class="mono wrap">{client.scope ?? "–"}</span>
                </FactRow>
              </Facts>
              <div class="space" />
              <div class="acts">
                <Action needs="clients:write" onClick={() => setOpen("edit")}>
                  {t("Change")}
                </Action>
                {client.token_endpoint_auth_method !== "none" && (
                  <Action needs="clients:write" onClick={() => setOpen("secret")}>
                    {t("Replace the secret…")}
                  </Action>
                )}
                <Action needs="clients:write" kind="bad" onClick={() => setOpen("delete")}>
                  {t("Delete…")}
                </Action>
              </div>
            </Section>
            <ClientLogo
              key={client.client_id}
              id={client.client_id}
              name={client.client_name ?? client.client_id}
            />
          </>
        )
      }
      onClosePane={() => setQuery({ sel: undefined })}
    >
      <Title
        actions={
          <Action
            onClick={() => setOpen("create")}
            needs="clients:write"
            kind="primary"
            icon="plus"
          >
            {t("New client")}
          </Action>
        }
      >
        {t("Clients")}
      </Title>
      <Loading of={loaded}>
        {({ clients, next_cursor: next }) => (
          <>
            <Table
              label={t("Clients")}
              rows={clients}
              isTall
              idOf={({ client_id: id }) => id}
              selected={client?.client_id}
              onSelect={({ client_id: id }) => setQuery({ sel: id })}
              columns={[
                {
                  title: t("Name"),
                  render: ({ client_id: id, client_name: name }) => (
                    <span class="two">
                      <b>{name ?? id}</b>
                      <small class="mono">{id}</small>
                    </span>
                  ),
                },
                {
                  title: t("Grants"),
                  kind: "w-xl mono wide-only",
                  render: ({ grant_types: grants }) => <span class="i2">{grants.join(", ")}</span>,
                },
              ]}
            />
            <NextPage cursor={next} />
          </>
        )}
      </Loading>
      {open === "create" && <NewClient onClose={close} onCreated={() => void loaded.reload()} />}
      {open === "edit" && client !== undefined && (
        <EditClient client={client} onClose={close} onSaved={() => loaded.reload()} />
      )}
      {open === "secret" && client !== undefined && (
        <ConfirmDialog
          title={t("Replace the secret of {name}", {
            name: client.client_name ?? client.client_id,
          })}
          name={client.client_id}
          submit={t("Replace")}
          createsSecret
          onClose={close}
          onSubmit={async () => {
            setSecret(await callService("auth", `${path}/secret`, { method: "POST", json: {} }));
          }}
        >
          <p>{t("The previous secret becomes invalid immediately.")}</p>
        </ConfirmDialog>
      )}
      {open === "delete" && client !== undefined && (
        <ConfirmDialog
          title={t("Delete {name}", { name: client.client_name ?? client.client_id })}
          name={client.client_id}
          submit={t("Delete")}
          onClose={close}
          onSubmit={async () => {
            await callService("auth", path, { method: "DELETE" });
            setQuery({ sel: undefined });
            await loaded.reload();
          }}
        >
          <p>{t("Its tokens become invalid immediately.")}</p>
        </ConfirmDialog>
      )}
      {secret !== undefined && (
        <ClientSecretDialog answer={secret} onClose={() => setSecret(undefined)} />
      )}
    </Split>
  );
}

/** Creates a client, and shows its secret once. */
export function NewClient(props: { onClose: () => void; onCreated?: () => void }) {
  const [name, setName] = useState("");
  const [redirect, setRedirect] = useState("");
  const [scope, setScope] = useState("");
  const [created, setCreated] = useState<ClientSecret | undefined>(undefined);
  if (created !== undefined) return <ClientSecretDialog answer={created} onClose={props.onClose} />;
  return (
    <FormDialog
      title={t("New client")}
      submit={t("Create")}
      createsSecret
      onClose={props.onClose}
      onSubmit={async () => {
        const json = {
          client_name: name,
          ...(scope === "" ? {} : { scope }),
          ...(redirect === ""
            ? { grant_types: ["client_credentials"], response_types: [], redirect_uris: [] }
            : { redirect_uris: [redirect] }),
        };
        setCreated(await callService("auth", "/auth/clients", { method: "POST", json }));
        props.onCreated?.();
        return STAY_OPEN;
      }}
    >
      <TextField label={t("Name")} value={name} onInput={setName} required />
      <TextField
        label={t("Redirect URI")}
        value={redirect}
        onInput={setRedirect}
        isMono
        hint={t("Empty: a program that acts for itself (client credentials).")}
      />
      <TextField label={t("Scopes")} value={scope} onInput={setScope} isMono />
    </FormDialog>
  );
}

interface EditProps {
  client: Client;
  onClose: () => void;
  onSaved: () => Promise<void>;
}

function EditClient(props: EditProps) {
  const { client_id: id } = props.client;
  const loaded = useLoad(`version ${id}`, (signal) =>
    readVersioned<Client>(api("auth", `/auth/clients/${segment(id)}`), signal),
  );
  return (
    <Loading of={loaded}>
      {({ document = props.client, etag }) => (
        <ClientForm {...props} client={document} etag={etag} />
      )}
    </Loading>
  );
}

function ClientForm(props: EditProps & { etag: string | undefined }) {
  const { client } = props;
  const [name, setName] = useState(client.client_name ?? "");
  const [redirects, setRedirects] = useState(client.redirect_uris.join("\n"));
  const [scope, setScope] = useState(client.scope ?? "");
  return (
    <FormDialog
      title={t("Change {name}", { name: client.client_name ?? client.client_id })}
      submit={t("Save")}
      onClose={props.onClose}
      onSubmit={async () => {
        const json = {
          client_name: name === "" ? null : name,
          scope: scope.trim() === "" ? null : scope.trim(),
          redirect_uris: redirects.split(/\s+/).filter((uri) => uri !== ""),
        };
        const path = `/auth/clients/${segment(client.client_id)}`;
        const headers = onlyIf(props.etag);
        await callService("auth", path, { method: "PATCH", json, headers });
        await props.onSaved();
      }}
    >
      <TextField label={t("Name")} value={name} onInput={setName} />
      <AreaField
        label={t("Redirect URIs, one per line")}
        value={redirects}
        rows={4}
        onInput={setRedirects}
      />
      <TextField label={t("Scopes")} value={scope} onInput={setScope} isMono />
    </FormDialog>
  );
}

function ClientSecretDialog(props: { answer: ClientSecret; onClose: () => void }) {
  const { client_id: id, client_secret: secret } = props.answer;
  return (
    <SecretDialog
      title={t("Client secret")}
      values={secret === undefined ? [id] : [id, secret]}
      onClose={props.onClose}
    />
  );
}
