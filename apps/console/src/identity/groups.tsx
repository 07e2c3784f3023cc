// Groups: their roles apply to all of their members.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { segment, withQuery } from "../api/api.ts";
import { formatDate } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, Section, TextField } from "../view/controls.tsx";
import { ConfirmDialog, FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { NextPage } from "../view/next-page.tsx";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { useChosen } from "./chosen.tsx";
import { RolesSection } from "./roles-section.tsx";
import { EditRoles } from "./user-dialogs.tsx";

const PAGE = 100;

type Group = Answer<"auth", "GET /groups/{id}">["group"];

type MemberPage = Answer<"auth", "GET /groups/{id}/members">;

export function GroupsPage() {
  useCrumbs([{ label: t("Identity") }, { label: t("Groups") }]);
  const cursor = queryValue("cursor");
  const [isCreating, setCreating] = useState(false);
  const loaded = useLoad(cursor, () =>
    callService<Answer<"auth", "GET /groups">>(
      "auth",
      withQuery("/groups", { limit: PAGE, cursor }),
    ),
  );
  const selected = queryValue("sel");
  const { item: group, notice } = useChosen({
    id: selected,
    page: loaded.data.value?.groups,
    idOf: ({ id }) => id,
    read: async (signal) => {
      const path = `/groups/${segment(selected)}`;
      return (await callService<Answer<"auth", "GET /groups/{id}">>("auth", path, { signal }))
        .group;
    },
    whole: { to: "/identity/groups", label: t("All groups") },
  });
  useCommands([
    {
      label: t("New group"),
      key: "n",
      icon: "plus",
      needs: "users:write",
      run: () => setCreating(true),
    },
  ]);
  return (
    <Split
      pane={
        group === undefined ? (
          notice
        ) : (
          <GroupPane
            key={group.id}
            group={group}
            onDeleted={() => {
              setQuery({ sel: undefined });
              void loaded.reload();
            }}
          />
        )
      }
      onClosePane={() => setQuery({ sel: undefined })}
    >
      <Title
        actions={
          <Action onClick={() => setCreating(true)} needs="users:write" kind="primary" icon="plus">
            {t("New group")}
          </Action>
        }
      >
        {t("Groups")}
      </Title>
      <Loading of={loaded}>
        {({ groups, next_cursor: next }) => (
          <>
            {groups.length === 0 && (
              <Empty title={t("No groups yet")}>
                <p>{t("The roles of a group apply to all of its members.")}</p>
              </Empty>
            )}
            {groups.length > 0 && (
              <Table
                label={t("Groups")}
                rows={groups}
                idOf={({ id }) => id}
                selected={group?.id}
                onSelect={({ id }) => setQuery({ sel: id })}
                columns={[
                  { title: t("Name"), sort: ({ name }) => name, render: ({ name }) => name },
                  {
                    title: t("Created"),
                    kind: "w-m wide-only",
                    isNumber: true,
                    render: ({ created_at: at }) => formatDate(at),
                  },
                ]}
              />
            )}
            <NextPage cursor={next} />
          </>
        )}
      </Loading>
      {isCreating && (
        <NewGroup onClose={() => setCreating(false)} onCreated={() => loaded.reload()} />
      )}
    </Split>
  );
}

function GroupPane({ group, onDeleted }: { group: Group; onDeleted: () => void }) {
  const { id, name } = group;
  const path = `/groups/${segment(id)}`;
  const rolesPath = `/rbac/groups/${segment(id)}/roles`;
  const [open, setOpen] = useState<"roles" | "member" | "delete" | undefined>(undefined);
  const close = (): void => setOpen(undefined);
  const roles = useLoad(id, () =>
    callService<Answer<"auth", "GET /rbac/groups/{id}/roles">>("auth", rolesPath),
  );
  const [cursor, setCursor] = useState("");
  const members = useLoad(`${id} ${cursor}`, () =>
    callService<MemberPage>("auth", withQuery(`${path}/members`, { limit: PAGE, cursor })),
  );
  const isPaged = cursor !== "" || (members.data.value?.next_cursor ?? null) !== null;
  const remove = (userId: string): void => {
    void attempt(async () => {
      await callService("auth", `${path}/members/${segment(userId)}`, { method: "DELETE" });
      await members.reload();
    }, t("Removed."));
  };
  return (
    <>
      <section class="sec">
        <h2>{name}</h2>
        <div class="acts">
          <Action needs="users:write" kind="bad" onClick={() => setOpen("delete")}>
            {t("Delete…")}
          </Action>
        </div>
      </section>
      <RolesSection roles={roles} onChange={() => setOpen("roles")} />
      <Section
        title={t("Members")}
        action={
          <button type="button" onClick={() => setOpen("member")}>
            {t("Add…")}
          </button>
        }
      >
        <Loading of={members}>
          {({ users, next_cursor: next }) => (
            <div class="lines">
              {users.length === 0 && <p class="i3">{t("No members")}</p>}
              {users.map((user) => (
                <div key={user.id} class="line">
                  <b>{user.username}</b>
                  <Action needs="users:write" kind="bad" onClick={() => remove(user.id)}>
                    {t("Remove")}
                  </Action>
                </div>
              ))}
              {(next !== null || cursor !== "") && (
                <div class="acts">
                  <Action
                    onClick={() => setCursor("")}
                    blocked={cursor === "" ? t("This is the first page") : undefined}
                  >
                    {t("First page")}
                  </Action>
                  <Action
                    onClick={() => setCursor(next ?? "")}
                    blocked={next === null ? t("This is the last page") : undefined}
                  >
                    {t("Next page")}
                  </Action>
                </div>
              )}
            </div>
          )}
        </Loading>
      </Section>
      {open === "roles" && (
        <EditRoles path={rolesPath} onClose={close} onSaved={() => roles.reload()} />
      )}
      {open === "member" && (
        <AddMember path={path} onClose={close} onAdded={() => members.reload()} />
      )}
      {open === "delete" && (
        <ConfirmDialog
          title={t("Delete {name}", { name })}
          name={name}
          submit={t("Delete")}
          onClose={close}
          onSubmit={async () => {
            await callService("auth", path, { method: "DELETE" });
            onDeleted();
          }}
        >
          <p>
            {isPaged
              ? t("More than {n} members lose the roles that they have by this group.", {
                  n: PAGE,
                })
              : t("{n} members lose the roles that they have by this group.", {
                  n: members.data.value?.users.length ?? 0,
                })}
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}

function NewGroup(props: { onClose: () => void; onCreated: () => Promise<void> }) {
  const [name, setName] = useState("");
  return (
    <FormDialog
      title={t("New group")}
      submit={t("Create")}
      onClose={props.onClose}
      onSubmit={async () => {
        const { group } = await callService<Answer<"auth", "POST /groups">>("auth", "/groups", {
          method: "POST",
          json: { name },
        });
        await props.onCreated();
        setQuery({ sel: group.id });
      }}
    >
      <TextField label={t("Name")} value={name} onInput={setName} required />
    </FormDialog>
  );
}

function AddMember(props: { path: string; onClose: () => void; onAdded: () => Promise<void> }) {
  const [username, setUsername] = useState("");
  return (
    <FormDialog
      title={t("Add a member")}
      submit={t("Add")}
      onClose={props.onClose}
      onSubmit={async () => {
        const { users } = await callService<Answer<"auth", "GET /users">>(
          "auth",
          withQuery("/users", { q: username, limit: PAGE }),
        );
        const wanted = username.trim().toLowerCase();
        const found = users.find((user) => user.username.toLowerCase() === wanted);
        if (found === undefined) throw new Error(t("There is no user with this username."));
        const member = `${props.path}/members/${segment(found.id)}`;
        await callService("auth", member, { method: "PUT" });
        await props.onAdded();
      }}
    >
      <TextField label={t("Username")} value={username} onInput={setUsername} required />
    </FormDialog>
  );
}
