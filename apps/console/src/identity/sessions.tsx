// Sessions of all users, newest first.
import type { Answer } from "../contract/answer.ts";
import { segment, withQuery } from "../api/api.ts";
import { formatAgo, formatMoment } from "../format/format.ts";
import { href, queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, Section } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { NextPage } from "../view/next-page.tsx";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";

const PAGE = 100;

type Session = Answer<"auth", "GET /sessions">["sessions"][number];

export function SessionsPage() {
  useCrumbs([{ label: t("Identity") }, { label: t("Sessions") }]);
  const cursor = queryValue("cursor");
  const loaded = useLoad(cursor, () =>
    callService<Answer<"auth", "GET /sessions">>(
      "auth",
      withQuery("/sessions", { all: "true", limit: PAGE, cursor }),
    ),
  );
  const session = loaded.data.value?.sessions.find(({ id }) => id === queryValue("sel"));
  const end = (id: string): void => {
    void attempt(async () => {
      await callService("auth", `/sessions/${segment(id)}`, { method: "DELETE" });
      setQuery({ sel: undefined });
      await loaded.reload();
    }, t("The session has ended."));
  };
  return (
    <Split
      pane={
        session === undefined ? undefined : (
          <SessionPane session={session} onEnd={() => end(session.id)} />
        )
      }
      onClosePane={() => setQuery({ sel: undefined })}
    >
      <Title>{t("Sessions")}</Title>
      <Loading of={loaded}>
        {({ sessions, next_cursor: next = null }) => (
          <>
            {sessions.length === 0 && <Empty title={t("Nobody is signed in")} />}
            {sessions.length > 0 && (
              <Table
                label={t("Sessions")}
                rows={sessions}
                isTall
                idOf={({ id }) => id}
                selected={session?.id}
                onSelect={({ id }) => setQuery({ sel: id })}
                columns={[
                  {
                    title: t("User"),
                    render: (one) => (
                      <span class="two">
                        <b>{nameOf(one)}</b>
                        <small>{one.device}</small>
                      </span>
                    ),
                  },
                  { title: "IP", kind: "w-l mono wide-only", render: ({ ip }) => ip },
                  {
                    title: t("Factors"),
                    kind: "w-m mono wide-only",
                    render: ({ amr }) => <span class="i2">{amr.join(", ")}</span>,
                  },
                  {
                    title: t("Last used"),
                    kind: "w-m",
                    isNumber: true,
                    render: ({ last_seen_at: at }) => formatAgo(at),
                  },
                ]}
              />
            )}
            <NextPage cursor={next} />
          </>
        )}
      </Loading>
    </Split>
  );
}

function SessionPane({ session, onEnd }: { session: Session; onEnd: () => void }) {
  const { user } = session;
  return (
    <Section title={nameOf(session)} note={session.device}>
      <Facts>
        <FactRow term="IP" isMono>
          {session.ip}
        </FactRow>
        <FactRow term={t("Browser")}>
          <span class="wrap">{session.user_agent || "–"}</span>
        </FactRow>
        <FactRow term={t("Factors")} isMono>
          {session.amr.join(", ")}
        </FactRow>
        <FactRow term={t("Signed in")}>{formatMoment(session.created_at)}</FactRow>
        <FactRow term={t("Last used")}>{formatMoment(session.last_seen_at)}</FactRow>
        <FactRow term={t("Ends")}>{formatMoment(session.expires_at)}</FactRow>
      </Facts>
      <div class="space" />
      <div class="acts">
        {user !== undefined && (
          <a class="btn sm" href={href(`/identity/users?sel=${encodeURIComponent(user.id)}`)}>
            {t("Show the user")}
          </a>
        )}
        <Action needs="sessions:write" kind="bad" onClick={onEnd}>
          {t("End")}
        </Action>
      </div>
    </Section>
  );
}

function nameOf({ user, id }: Session): string {
  return user?.username ?? id;
}
