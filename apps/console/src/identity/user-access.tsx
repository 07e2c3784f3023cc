// Access of one user: permissions and the roles that they come from, ways to sign in, sessions.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { segment } from "../api/api.ts";
import { formatAgo } from "../format/format.ts";
import { callService } from "../session/session.ts";
import { Action, Section } from "../view/controls.tsx";
import { ConfirmDialog } from "../view/dialog.tsx";
import { useLoad, type Loaded } from "../view/load.ts";
import { Loading } from "../view/problem.tsx";
import { StateMark } from "../view/state.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";

/** A session of a user. */
export type UserSession = Answer<"auth", "GET /sessions">["sessions"][number];

type Factor = FactorList["factors"][number] | FactorList["passkeys"][number];

type FactorList = Answer<"auth", "GET /users/{id}/factors">;

/** Effective permissions; each names the roles that have it. */
export function Permissions({ id }: { id: string }) {
  const loaded = useLoad(id, () =>
    callService<Answer<"auth", "GET /users/{id}/permissions">>(
      "auth",
      `/users/${segment(id)}/permissions`,
    ),
  );
  return (
    <Section title={t("Permissions")} note={loaded.data.value?.permissions.length}>
      <Loading of={loaded}>
        {({ permissions }) => (
          <div class="lines">
            {permissions.length === 0 && <p class="i3">{t("None")}</p>}
            {permissions.map(({ name, roles }) => (
              <div key={name} class="line">
                <StateMark kind="ok" />
                <b class="mono">{name}</b>
                <small>{t("from {roles}", { roles: roles.join(", ") })}</small>
              </div>
            ))}
          </div>
        )}
      </Loading>
    </Section>
  );
}

/** Ways to sign in, and the removal of second factors that a user has lost. */
export function Factors({ id, name }: { id: string; name: string }) {
  const [isRemoving, setRemoving] = useState(false);
  const path = `/users/${segment(id)}/factors`;
  const loaded = useLoad(id, () => callService<FactorList>("auth", path));
  const found = loaded.data.value;
  return (
    <Section
      title={t("Ways to sign in")}
      action={
        found !== undefined &&
        found.factors.length > 0 && (
          <button type="button" onClick={() => setRemoving(true)}>
            {t("Remove second factors…")}
          </button>
        )
      }
    >
      <Loading of={loaded}>
        {({ has_password: hasPassword, passkeys, factors }) => (
          <div class="lines">
            {hasPassword && (
              <div class="line">
                <StateMark kind="ok" />
                <b>{t("Password")}</b>
              </div>
            )}
            {passkeys.map((one) => (
              <FactorLine key={one.id} factor={one} kind={t("Passkey")} />
            ))}
            {factors.map((one) => (
              <FactorLine key={one.id} factor={one} kind={one.type ?? ""} />
            ))}
            {!hasPassword && passkeys.length + factors.length === 0 && (
              <p class="i3">{t("None: the user needs a recovery link.")}</p>
            )}
          </div>
        )}
      </Loading>
      {isRemoving && (
        <ConfirmDialog
          title={t("Remove the second factors of {name}", { name })}
          name={name}
          submit={t("Remove")}
          onClose={() => setRemoving(false)}
          onSubmit={async () => {
            await callService("auth", path, { method: "DELETE" });
            await loaded.reload();
          }}
        >
          <p>
            {t("{n} second factors and the backup codes will be gone, and all sessions end.", {
              n: found?.factors.length ?? 0,
            })}
          </p>
        </ConfirmDialog>
      )}
    </Section>
  );
}

function FactorLine({ factor, kind }: { factor: Factor; kind: string }) {
  const { name, last_used_at: usedAt } = factor;
  return (
    <div class="line">
      <StateMark kind="ok" />
      <b>{name}</b>
      <small>
        {kind} · {usedAt === null ? t("never used") : t("used {ago}", { ago: formatAgo(usedAt) })}
      </small>
    </div>
  );
}

/** Sessions of a user, each of which can be ended. */
export function Sessions({ sessions }: { sessions: Loaded<UserSession[]> }) {
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
