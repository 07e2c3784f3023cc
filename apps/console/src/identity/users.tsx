// Users: find one, see roles and sessions, disable, sign out, invite.
import { useState } from "preact/hooks";
import { segment, withQuery } from "../api/api.ts";
import { formatAgo, formatDate, formatInitials, formatMoment } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, FilterField, Section } from "../view/controls.tsx";
import { ConfirmDialog } from "../view/dialog.tsx";
import { useLoad, type Loaded } from "../view/load.ts";
import { NextPage } from "../view/next-page.tsx";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { SecretDialog } from "../view/secret.tsx";
import { State, StateMark } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { attempt, runUnlessUndone } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { CreateUser, EditRoles } from "./user-dialogs.tsx";

const PAGE = 100;

interface User {
  id: string;
  username: string;
  email?: string;
  email_verified?: boolean;
  name?: string;
  tenant?: string;
  disabled?: boolean;
  created_at: string;
}

interface UserSession {
  id: string;
  device: string;
  ip: string;
  last_seen_at: string;
  amr: string[];
}

interface UserPage {
  users: User[];
  next_cursor: string | null;
}

/** The page. */
export function UsersPage() {
  useCrumbs([{ label: t("Identity") }, { label: t("Users") }]);
  const search = queryValue("filter");
  const cursor = queryValue("cursor");
  const selected = queryValue("sel");
  const [open, setOpen] = useState<"create" | undefined>(undefined);
  const [invitation, setInvitation] = useState<string | undefined>(undefined);
  const loaded = useLoad(`users ${search} ${cursor}`, () =>
    callService<UserPage>("auth", withQuery("/users", { limit: PAGE, search, cursor })),
  );
  const invite = (): void => {
    void attempt(async () => {
      const { url } = await callService<{ url: string }>("auth", "/invitations", {
        method: "POST",
        json: {},
      });
      setInvitation(url);
    });
  };
  const create = (): void => setOpen("create");
  useCommands([
    { label: t("Invite"), key: "i", icon: "plus", needs: "users:write", run: invite },
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
          value={search}
          onInput={(value) => setQuery({ filter: value, cursor: undefined }, { replace: true })}
        />
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
                  { title: t("State"), kind: "w-m", render: (user) => <UserState user={user} /> },
                ]}
              />
            )}
            <NextPage cursor={next} />
          </>
        )}
      </Loading>
      {open === "create" && (
        <CreateUser onClose={() => setOpen(undefined)} onCreated={() => void loaded.reload()} />
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

function Person({ user }: { user: User }) {
  const name = user.name ?? user.username;
  return (
    <span class="person">
      <span class={`ava ava-${user.id.charCodeAt(user.id.length - 1) % 6}`} aria-hidden="true">
        {formatInitials(name)}
      </span>
      <span class="two">
        <b>{name}</b>
        <small>{user.email ?? user.username}</small>
      </span>
    </span>
  );
}

function UserState({ user }: { user: User }) {
  if (user.disabled === true) return <State kind="off">{t("Disabled")}</State>;
  if (user.email !== undefined && user.email_verified !== true) {
    return <State kind="warn">{t("Address not verified")}</State>;
  }
  return <State kind="ok">{t("Active")}</State>;
}

function UserPane({ id, onChanged }: { id: string; onChanged: () => void }) {
  const path = `/users/${segment(id)}`;
  const [open, setOpen] = useState<"roles" | "delete" | undefined>(undefined);
  const user = useLoad(id, async () => (await callService<{ user: User }>("auth", path)).user);
  const roles = useLoad(id, () =>
    callService<{ roles: string[]; effective_permissions?: string[] }>(
      "auth",
      `/rbac/users/${segment(id)}/roles`,
    ),
  );
  const sessions = useLoad(
    id,
    async () =>
      (
        await callService<{ sessions: UserSession[] }>(
          "auth",
          withQuery("/sessions", { user_id: id }),
        )
      ).sessions,
  );
  const change = (json: object, done: string): void => {
    void attempt(async () => {
      await callService("auth", path, { method: "PATCH", json });
      await user.reload();
      void sessions.reload();
      onChanged();
    }, done);
  };
  const close = (): void => setOpen(undefined);
  const signOut = (name: string): void =>
    runUnlessUndone(t("Signing out {name} everywhere", { name }), async () => {
      const json = { user_id: id };
      await callService("auth", "/sessions/invalidate", { method: "POST", json });
      void sessions.reload();
    });
  const setDisabled = (disabled: boolean): void =>
    change({ disabled }, disabled ? t("Disabled; all sessions have ended.") : t("Enabled."));
  const { username: name = id, disabled: isDisabled = false } = user.data.value ?? {};
  useCommands([
    {
      label: isDisabled ? t("Enable {name}", { name }) : t("Disable {name}", { name }),
      key: "d",
      icon: "close",
      needs: "users:write",
      run: () => setDisabled(!isDisabled),
    },
    {
      label: t("Sign out {name} everywhere", { name }),
      icon: "out",
      needs: "sessions:write",
      run: () => signOut(name),
    },
  ]);
  return (
    <Loading of={user}>
      {(found) => (
        <>
          <section class="sec">
            <Person user={found} />
            <p class="mono i3 cut">{found.id}</p>
            <div class="acts">
              <Action
                needs="users:write"
                onClick={() =>
                  void attempt(
                    () => callService("auth", `${path}/recovery`, { method: "POST", json: {} }),
                    t("A recovery link was sent."),
                  )
                }
              >
                {t("Send recovery link")}
              </Action>
              <Action needs="sessions:write" onClick={() => signOut(found.username)}>
                {t("Sign out everywhere")}
              </Action>
              {found.disabled === true ? (
                <Action needs="users:write" onClick={() => setDisabled(false)} shortcut="d">
                  {t("Enable")}
                </Action>
              ) : (
                <Action
                  kind="bad"
                  needs="users:write"
                  onClick={() => setDisabled(true)}
                  shortcut="d"
                >
                  {t("Disable")}
                </Action>
              )}
              <Action kind="bad" needs="users:write" onClick={() => setOpen("delete")}>
                {t("Delete…")}
              </Action>
            </div>
          </section>
          <Section
            title={t("Roles")}
            action={
              <button type="button" onClick={() => setOpen("roles")}>
                {t("Change")}
              </button>
            }
          >
            <Loading of={roles}>
              {({ roles: list, effective_permissions: permissions = [] }) => (
                <>
                  <p class="tags">
                    {list.map((role) => (
                      <span key={role} class="tag mono">
                        {role}
                      </span>
                    ))}
                    {list.length === 0 && <span class="i3">{t("No roles")}</span>}
                  </p>
                  <p class="mono i2 wrap">{permissions.join("  ")}</p>
                </>
              )}
            </Loading>
          </Section>
          <Section title={t("Account")}>
            <Facts>
              <FactRow term={t("Username")} isMono>
                {found.username}
              </FactRow>
              <FactRow term={t("Address")} isMono>
                {found.email ?? "–"}
              </FactRow>
              <FactRow term={t("Tenant")} isMono>
                {found.tenant ?? "–"}
              </FactRow>
              <FactRow term={t("Created")}>{formatMoment(found.created_at)}</FactRow>
            </Facts>
          </Section>
          <Sessions sessions={sessions} />
          {open === "roles" && (
            <EditRoles
              id={id}
              roles={roles.data.value?.roles ?? []}
              onClose={close}
              onSaved={() => void roles.reload()}
            />
          )}
          {open === "delete" && (
            <ConfirmDialog
              title={t("Delete {name}", { name: found.username })}
              name={found.username}
              submit={t("Delete")}
              onClose={close}
              onSubmit={async () => {
                await callService("auth", path, { method: "DELETE" });
                setQuery({ sel: undefined });
                onChanged();
              }}
            >
              <p>
                {t("The user, {n} sessions, all factors and grants will be gone.", {
                  n: sessions.data.value?.length ?? 0,
                })}
              </p>
            </ConfirmDialog>
          )}
        </>
      )}
    </Loading>
  );
}

function Sessions({ sessions }: { sessions: Loaded<UserSession[]> }) {
  const end = (id: string): void => {
    void attempt(async () => {
      await callService("auth", `/sessions/${segment(id)}`, { method: "DELETE" });
      await sessions.reload();
    }, t("The session has ended."));
  };
  return (
    <Section title={t("Sessions")} note={sessions.data.value?.length}>
      <Loading of={sessions}>
        {(list) => (
          <div class="lines">
            {list.length === 0 && <p class="i3">{t("Not signed in")}</p>}
            {list.map((session) => (
              <div key={session.id} class="line">
                <StateMark kind="ok" />
                <b>{session.device}</b>
                <Action needs="sessions:write" kind="bad" onClick={() => end(session.id)}>
                  {t("End")}
                </Action>
                <small>
                  {session.ip} · {formatAgo(session.last_seen_at)} · {session.amr.join(", ")}
                </small>
              </div>
            ))}
          </div>
        )}
      </Loading>
    </Section>
  );
}
