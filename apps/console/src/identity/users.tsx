// Users: find one by name, state and role; invite, create.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { withQuery } from "../api/api.ts";
import { formatDate } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FilterField, Segments } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { NextPage } from "../view/next-page.tsx";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { SecretDialog } from "../view/secret.tsx";
import { State } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { CreateUser } from "./user-dialogs.tsx";
import { Person, UserPane, type User } from "./user-pane.tsx";

const PAGE = 100;
const STATES = ["all", "active", "disabled"] as const;

type UserPage = Answer<"auth", "GET /users">;

export function UsersPage() {
  useCrumbs([{ label: t("Identity") }, { label: t("Users") }]);
  const q = queryValue("filter");
  const state = STATES.find((one) => one !== "all" && one === queryValue("state"));
  const role = queryValue("role");
  const cursor = queryValue("cursor");
  const selected = queryValue("sel");
  const [open, setOpen] = useState<"create" | undefined>(undefined);
  const [invitation, setInvitation] = useState<string | undefined>(undefined);
  const roles = useLoad(
    "roles",
    async () => (await callService<Answer<"auth", "GET /rbac/roles">>("auth", "/rbac/roles")).roles,
  );
  const loaded = useLoad(JSON.stringify([q, state, role, cursor]), () =>
    callService<UserPage>("auth", withQuery("/users", { limit: PAGE, q, state, role, cursor })),
  );
  const invite = (): void => {
    void attempt(async () => {
      const { url } = await callService<Answer<"auth", "POST /invitations">>(
        "auth",
        "/invitations",
        {
          method: "POST",
          json: {},
        },
      );
      setInvitation(url);
    });
  };
  const create = (): void => setOpen("create");
  useCommands([
    { label: t("Invite a person"), key: "i", icon: "plus", needs: "users:write", run: invite },
    { label: t("New user"), key: "n", icon: "plus", needs: "users:write", run: create },
  ]);
  return (
    <Split
      pane={
        selected === "" ? undefined : (
          <UserPane key={selected} id={selected} onChanged={() => void loaded.reload()} />
        )
      }
      onClosePane={() => setQuery({ sel: undefined })}
    >
      <h1 class="hidden">{t("Users")}</h1>
      <div class="bar">
        <FilterField
          label={t("Name or address")}
          icon="search"
          value={q}
          onInput={(value) => setQuery({ filter: value, cursor: undefined }, { replace: true })}
        />
        <Segments
          label={t("State")}
          value={state ?? "all"}
          options={STATES.map((one) => [one, labelOf(one)] as const)}
          onChange={(value) =>
            setQuery({ state: value === "all" ? undefined : value, cursor: undefined })
          }
        />
        <select
          class="field field-auto"
          aria-label={t("Role")}
          value={role}
          onChange={(event) => setQuery({ role: event.currentTarget.value, cursor: undefined })}
        >
          <option value="">{t("All roles")}</option>
          {(roles.data.value ?? []).map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <span class="grow" />
        <Action onClick={create} needs="users:write" isSmall={false}>
          {t("New user")}
        </Action>
        <Action onClick={invite} needs="users:write" kind="primary" icon="plus" isSmall={false}>
          {t("Invite")}
        </Action>
      </div>
      <Loading of={loaded}>
        {({ users, next_cursor: next }) => (
          <>
            {users.length === 0 && <Empty title={t("No user matches")} />}
            {users.length > 0 && (
              <Table
                label={t("Users")}
                rows={users}
                isTall
                idOf={({ id }) => id}
                selected={selected}
                onSelect={({ id }) => setQuery({ sel: id })}
                columns={[
                  {
                    title: t("Name"),
                    sort: ({ username }) => username,
                    render: (user) => <Person user={user} />,
                  },
                  {
                    title: t("Created"),
                    kind: "w-s wide-only",
                    isNumber: true,
                    sort: ({ created_at: at }) => at,
                    render: ({ created_at: at }) => formatDate(at),
                  },
                  { title: t("State"), kind: "w-l", render: (user) => <UserState user={user} /> },
                ]}
              />
            )}
            <NextPage cursor={next} />
          </>
        )}
      </Loading>
      {open === "create" && (
        <CreateUser onClose={() => setOpen(undefined)} onCreated={() => loaded.reload()} />
      )}
      {invitation !== undefined && (
        <SecretDialog
          title={t("Invitation")}
          note={t("This link is valid for one registration within a week. It is shown once.")}
          values={[invitation]}
          onClose={() => setInvitation(undefined)}
        />
      )}
    </Split>
  );
}

function UserState({ user }: { user: User }) {
  if (user.disabled === true) return <State kind="off">{t("Disabled")}</State>;
  if (user.email !== undefined && user.email_verified !== true) {
    return <State kind="warn">{t("Address not verified")}</State>;
  }
  return <State kind="ok">{t("Active")}</State>;
}

function labelOf(state: (typeof STATES)[number]): string {
  switch (state) {
    case "active":
      return t("Active");
    case "disabled":
      return t("Disabled");
    default:
      return t("All");
  }
}
