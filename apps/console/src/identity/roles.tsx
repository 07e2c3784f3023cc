// Roles and their permissions.
import { useState } from "preact/hooks";
import { segment } from "../api/api.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action, AreaField, Section, TextField } from "../view/controls.tsx";
import { ConfirmDialog, FormDialog } from "../view/dialog.tsx";
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
