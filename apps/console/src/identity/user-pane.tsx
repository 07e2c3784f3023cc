// One user: roles, permissions and whence, factors, sessions; disable, sign out, recover, delete.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { segment, withQuery } from "../api/api.ts";
import { formatInitials, formatMoment } from "../format/format.ts";
import { setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCommands } from "../stage/stage.ts";
import { Action, FactRow, Facts, Section } from "../view/controls.tsx";
import { ConfirmDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Loading } from "../view/problem.tsx";
import { attempt, runUnlessUndone } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { RolesSection } from "./roles-section.tsx";
import { Factors, Permissions, Sessions } from "./user-access.tsx";
import { EditRoles } from "./user-dialogs.tsx";

/** A user, as identity describes it. */
export type User = Answer<"auth", "GET /users/{id}">["user"];

/** The pane of a user. */
export function UserPane({ id, onChanged }: { id: string; onChanged: () => void }) {
  const path = `/users/${segment(id)}`;
  const [open, setOpen] = useState<"roles" | "delete" | undefined>(undefined);
  const user = useLoad(
    id,
    async () => (await callService<Answer<"auth", "GET /users/{id}">>("auth", path)).user,
  );
  const roles = useLoad(id, () =>
    callService<Answer<"auth", "GET /rbac/users/{id}/roles">>(
      "auth",
      `/rbac/users/${segment(id)}/roles`,
    ),
  );
  const sessions = useLoad(
    id,
    async () =>
      (
        await callService<Answer<"auth", "GET /sessions">>(
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
    runUnlessUndone({
      key: `sessions ${id}`,
      text: t("Signing out {name} everywhere", { name }),
      run: async () => {
        const json = { user_id: id };
        await callService("auth", "/sessions/invalidate", { method: "POST", json });
        void sessions.reload();
      },
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
    <Loading of={user} whole={{ to: "/identity/users", label: t("All users") }}>
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
          <RolesSection roles={roles} onChange={() => setOpen("roles")} />
          <Permissions key={`permissions ${(roles.data.value?.roles ?? []).join(" ")}`} id={id} />
          <Factors id={id} name={found.username} />
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
              path={`/rbac/users/${segment(id)}/roles`}
              onClose={close}
              onSaved={() => roles.reload()}
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

/** A user with initials, name and address. */
export function Person({ user }: { user: User }) {
  const name = user.name ?? user.username;
  const address = user.email ?? user.username;
  return (
    <span class="person">
      <span class={`ava ava-${user.id.charCodeAt(user.id.length - 1) % 6}`} aria-hidden="true">
        {formatInitials(name)}
      </span>
      <span class="two">
        <b>{name}</b>
        {address !== name && <small>{address}</small>}
      </span>
    </span>
  );
}
