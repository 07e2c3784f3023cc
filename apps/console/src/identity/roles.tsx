// Roles and their permissions.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { ApiFailure, segment } from "../api/api.ts";
import { onlyIf, readVersioned } from "../api/versioned.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { api, callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, AreaField, Section, TextField } from "../view/controls.tsx";
import { ConflictNotice } from "../view/conflict.tsx";
import { Diff } from "../view/diff.tsx";
import { ConfirmDialog, FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Split, Title } from "../view/pane.tsx";
import { Loading, Missing } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { attempt, say } from "../view/toast.tsx";
import { t } from "../words/words.ts";

type Role = Answer<"auth", "GET /rbac/roles">["roles"][number];

/** Roles and their permissions. */
export function RolesPage() {
  useCrumbs([{ label: t("Identity") }, { label: t("Roles") }]);
  const [open, setOpen] = useState<"create" | "delete" | undefined>(undefined);
  const loaded = useLoad(
    "roles",
    async () => (await callService<Answer<"auth", "GET /rbac/roles">>("auth", "/rbac/roles")).roles,
  );
  const create = (): void => setOpen("create");
  useCommands([{ label: t("New role"), key: "n", icon: "plus", needs: "rbac:write", run: create }]);
  const selected = queryValue("sel");
  const role = loaded.data.value?.find(({ name }) => name === selected);
  const isMissing = selected !== "" && loaded.data.value !== undefined;
  const close = (): void => setOpen(undefined);
  return (
    <Split
      pane={
        role === undefined ? (
          isMissing && (
            <Missing to="/identity/roles" label={t("All roles")}>
              <p>{t("There is no role {name}.", { name: selected })}</p>
            </Missing>
          )
        ) : (
          <RolePane
            key={role.name}
            role={role}
            onDelete={() => setOpen("delete")}
            onSaved={() => loaded.reload()}
          />
        )
      }
      onClosePane={() => setQuery({ sel: undefined })}
    >
      <Title
        actions={
          <Action onClick={create} needs="rbac:write" kind="primary" icon="plus">
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
      {open === "create" && <CreateRole onClose={close} onSaved={() => loaded.reload()} />}
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

function labelPermissions(): string {
  return t("Permissions, one per line");
}

function RolePane(props: { role: Role; onDelete: () => void; onSaved: () => Promise<void> }) {
  const { role } = props;
  const path = `/rbac/roles/${segment(role.name)}`;
  const loaded = useLoad(`role ${role.name}`, (signal) =>
    readVersioned<Role>(api("auth", path), signal),
  );
  const { document = role, etag } = loaded.data.value ?? {};
  const before = document.permissions.join("\n");
  const [text, setText] = useState<string | undefined>(undefined);
  const [conflict, setConflict] = useState<"told" | "compared" | undefined>(undefined);
  const shown = text ?? before;
  const write = async (): Promise<void> => {
    const permissions = shown.split(/\s+/).filter((one) => one !== "");
    const headers = onlyIf(etag);
    try {
      await callService("auth", `${path}/permissions`, {
        method: "PUT",
        json: { permissions },
        headers,
      });
    } catch (error) {
      if (!(error instanceof ApiFailure) || error.status !== 412) throw error;
      setConflict("told");
      return;
    }
    setText(undefined);
    setConflict(undefined);
    say(t("Saved."));
    await props.onSaved();
    await loaded.reload();
  };
  const isRead = loaded.data.value !== undefined;
  const builtin = role.builtin ? t("This role is built in.") : undefined;
  return (
    <Section title={role.name} note={role.description}>
      <div class="form">
        <AreaField label={labelPermissions()} value={shown} rows={12} onInput={setText} />
        {conflict === "told" && (
          <ConflictNotice
            onCompare={() => void loaded.reload().then(() => setConflict("compared"))}
          />
        )}
        {conflict === "compared" && <Diff before={before} after={shown} />}
        <div class="acts">
          <Action
            onClick={() => void attempt(write)}
            needs="rbac:write"
            blocked={isRead ? builtin : t("Loading …")}
            kind="primary"
          >
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

function CreateRole(props: { onClose: () => void; onSaved: () => Promise<void> }) {
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
        await props.onSaved();
      }}
    >
      <TextField label={t("Name")} value={name} onInput={setName} isMono required />
      <AreaField label={labelPermissions()} value={permissions} onInput={setPermissions} />
    </FormDialog>
  );
}
