// Roles and OAuth clients.
import { useState } from "preact/hooks";
import { segment, withQuery } from "../api/api.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action, AreaField, FactRow, Facts, Section, TextField } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { ConfirmDialog, Dialog, FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";

interface Role {
  name: string;
  description: string;
  permissions: string[];
  parents: string[];
  builtin: boolean;
}

/** Roles and their permissions. */
export function RolesPage() {
  useCrumbs([{ label: t("Identity") }, { label: t("Roles") }]);
  const [open, setOpen] = useState<"create" | "delete" | undefined>(undefined);
  const loaded = useLoad(
    "roles",
    async () => (await callService<{ roles: Role[] }>("auth", "/rbac/roles")).roles,
  );
  const role = loaded.data.value?.find(({ name }) => name === queryValue("sel"));
  const close = (): void => setOpen(undefined);
  return (
    <Split
      pane={
        role === undefined ? undefined : (
          <RolePane
            role={role}
            onDelete={() => setOpen("delete")}
            onSaved={() => void loaded.reload()}
          />
        )
      }
      onClosePane={() => setQuery({ sel: undefined })}
    >
      <Title
        actions={
          <Action onClick={() => setOpen("create")} needs="rbac:write" kind="primary" icon="plus">
            {t("New role")}
          </Action>
        }
      >
        {t("Roles")}
      </Title>
      <Loading of={loaded}>
        {(roles) => (
          <Table
            label={t("Roles")}
            rows={roles}
            idOf={({ name }) => name}
            selected={role?.name}
            onSelect={({ name }) => setQuery({ sel: name })}
            columns={[
              {
                title: t("Name"),
                kind: "w-l mono",
                sort: ({ name }) => name,
                render: ({ name }) => name,
              },
              {
                title: t("Permissions"),
                kind: "mono",
                render: ({ permissions }) => <span class="i2">{permissions.join("  ")}</span>,
              },
              {
                title: t("Description"),
                kind: "w-l wide-only",
                render: ({ description }) => description,
              },
            ]}
          />
        )}
      </Loading>
      {open === "create" && <CreateRole onClose={close} onSaved={() => void loaded.reload()} />}
      {open === "delete" && role !== undefined && (
        <ConfirmDialog
          title={t("Delete {name}", { name: role.name })}
          name={role.name}
          submit={t("Delete")}
          onClose={close}
          onSubmit={async () => {
            await callService("auth", `/rbac/roles/${segment(role.name)}`, { method: "DELETE" });
            setQuery({ sel: undefined });
            await loaded.reload();
          }}
        >
          <p>
            {t("Users, groups and clients lose its {n} permissions.", {
              n: role.permissions.length,
            })}
          </p>
        </ConfirmDialog>
      )}
    </Split>
  );
}

function RolePane(props: { role: Role; onDelete: () => void; onSaved: () => void }) {
  const { role } = props;
  const [text, setText] = useState<string | undefined>(undefined);
  const shown = text ?? role.permissions.join("\n");
  const save = (): void => {
    const permissions = shown.split(/\s+/).filter((one) => one !== "");
    const path = `/rbac/roles/${segment(role.name)}/permissions`;
    void attempt(async () => {
      await callService("auth", path, { method: "PUT", json: { permissions } });
      setText(undefined);
      props.onSaved();
    }, t("Saved."));
  };
  const builtin = role.builtin ? t("This role is built in.") : undefined;
  return (
    <Section title={role.name} note={role.description}>
      <div class="form">
        <AreaField label={t("Permissions, one a line")} value={shown} rows={12} onInput={setText} />
        <div class="acts">
          <Action onClick={save} needs="rbac:write" blocked={builtin} kind="primary">
            {t("Save")}
          </Action>
          <Action onClick={props.onDelete} needs="rbac:write" blocked={builtin} kind="bad">
            {t("Delete…")}
          </Action>
        </div>
      </div>
    </Section>
  );
}

function CreateRole(props: { onClose: () => void; onSaved: () => void }) {
  const [name, setName] = useState("");
  const [permissions, setPermissions] = useState("");
  return (
    <FormDialog
      title={t("New role")}
      submit={t("Create")}
      onClose={props.onClose}
      onSubmit={async () => {
        const json = { name, permissions: permissions.split(/\s+/).filter((one) => one !== "") };
        await callService("auth", "/rbac/roles", { method: "POST", json });
        props.onSaved();
      }}
    >
      <TextField label={t("Name")} value={name} onInput={setName} isMono required />
      <AreaField
        label={t("Permissions, one a line")}
        value={permissions}
        onInput={setPermissions}
      />
    </FormDialog>
  );
}

interface Client {
  client_id: string;
  client_name?: string;
  grant_types: string[];
  redirect_uris: string[];
  scope?: string;
  first_party?: boolean;
}

/** Answer that contains the secret of a client, once. */
interface ClientSecret {
  client_id: string;
  client_secret?: string;
}

/** OAuth clients: programs that sign users in or act for themselves. */
export function ClientsPage() {
  useCrumbs([{ label: t("Identity") }, { label: t("Clients") }]);
  const [open, setOpen] = useState<"create" | "delete" | undefined>(undefined);
  const [secret, setSecret] = useState<ClientSecret | undefined>(undefined);
  const loaded = useLoad(
    "clients",
    async () =>
      (await callService<{ clients: Client[] }>("auth", withQuery("/auth/clients", { limit: 100 })))
        .clients,
  );
  const client = loaded.data.value?.find(({ client_id: id }) => id === queryValue("sel"));
  const path = `/auth/clients/${segment(client?.client_id ?? "")}`;
  const close = (): void => setOpen(undefined);
  return (
    <Split
      pane={
        client === undefined ? undefined : (
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
              <Action
                needs="clients:write"
                onClick={() =>
                  void attempt(async () => {
                    setSecret(
                      await callService("auth", `${path}/secret`, { method: "POST", json: {} }),
                    );
                  })
                }
              >
                {t("Replace the secret")}
              </Action>
              <Action needs="clients:write" kind="bad" onClick={() => setOpen("delete")}>
                {t("Delete…")}
              </Action>
            </div>
          </Section>
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
        {(clients) => (
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
        )}
      </Loading>
      {open === "create" && (
        <CreateClient
          onClose={close}
          onCreated={(answer) => {
            setSecret(answer);
            void loaded.reload();
          }}
        />
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
        <SecretDialog answer={secret} onClose={() => setSecret(undefined)} />
      )}
    </Split>
  );
}

function CreateClient(props: { onClose: () => void; onCreated: (answer: ClientSecret) => void }) {
  const [name, setName] = useState("");
  const [redirect, setRedirect] = useState("");
  const [scope, setScope] = useState("");
  return (
    <FormDialog
      title={t("New client")}
      submit={t("Create")}
      onClose={props.onClose}
      onSubmit={async () => {
        const json = {
          client_name: name,
          ...(scope === "" ? {} : { scope }),
          ...(redirect === ""
            ? { grant_types: ["client_credentials"], response_types: [], redirect_uris: [] }
            : { redirect_uris: [redirect] }),
        };
        props.onCreated(await callService("auth", "/auth/clients", { method: "POST", json }));
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

function SecretDialog({ answer, onClose }: { answer: ClientSecret; onClose: () => void }) {
  const id = answer.client_id;
  const secret = answer.client_secret ?? "";
  return (
    <Dialog title={t("Client secret")} onClose={onClose}>
      <div class="dialog-body">
        <p>{t("The secret is shown once.")}</p>
        {[id, secret].map((value) => (
          <div key={value} class="cmd">
            <code>{value}</code>
            <CopyButton text={value} />
          </div>
        ))}
      </div>
    </Dialog>
  );
}
