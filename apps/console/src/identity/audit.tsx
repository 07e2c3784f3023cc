// The audit log, newest first, and the check of its chain.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { withQuery } from "../api/api.ts";
import { formatMoment } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, FilterField, Section } from "../view/controls.tsx";
import { JsonBlock } from "../view/json.tsx";
import { useLoad } from "../view/load.ts";
import { NextPage } from "../view/next-page.tsx";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";

const PAGE = 100;

export function AuditPage() {
  useCrumbs([{ label: t("Identity") }, { label: t("Audit") }]);
  const action = queryValue("filter");
  const actor = queryValue("actor");
  const from = queryValue("from");
  const to = queryValue("to");
  const cursor = queryValue("cursor");
  const [verdict, setVerdict] = useState<{ intact: boolean; events: number } | undefined>(
    undefined,
  );
  const loaded = useLoad(JSON.stringify([action, actor, from, to, cursor]), () =>
    callService<Answer<"auth", "GET /audit">>(
      "auth",
      withQuery("/audit", {
        limit: PAGE,
        cursor,
        action,
        actor,
        from: toInstant(from),
        to: toInstant(to),
      }),
    ),
  );
  const event = loaded.data.value?.events.find(({ seq }) => String(seq) === queryValue("sel"));
  return (
    <Split
      pane={
        event === undefined ? undefined : (
          <Section title={event.action} note={formatMoment(event.at)}>
            <Facts>
              <FactRow term={t("Actor")} isMono>
                {event.actor}
              </FactRow>
              <FactRow term={t("Target")} isMono>
                {event.target ?? "–"}
              </FactRow>
              <FactRow term={t("Outcome")}>{event.outcome ?? "–"}</FactRow>
              <FactRow term="IP" isMono>
                {event.ip ?? "–"}
              </FactRow>
            </Facts>
            <div class="space" />
            <div class="acts">
              <Action onClick={() => setQuery({ actor: event.actor, cursor: undefined })}>
                {t("All of this actor")}
              </Action>
            </div>
            <div class="space" />
            <JsonBlock text={JSON.stringify(event.detail)} />
          </Section>
        )
      }
      onClosePane={() => setQuery({ sel: undefined })}
    >
      <h1 class="hidden">{t("Audit")}</h1>
      <div class="bar">
        <FilterField
          label={t("Action, such as user.create")}
          value={action}
          isMono
          onInput={(value) => setQuery({ filter: value, cursor: undefined }, { replace: true })}
        />
        <MomentField
          label={t("From")}
          value={from}
          onChange={(value) => setTime({ from: value })}
        />
        <MomentField label={t("Until")} value={to} onChange={(value) => setTime({ to: value })} />
        {actor !== "" && (
          <Action onClick={() => setQuery({ actor: undefined, cursor: undefined })} icon="close">
            {actor}
          </Action>
        )}
        <span class="grow" />
        {verdict !== undefined && (
          <State kind={verdict.intact ? "ok" : "bad"}>
            {verdict.intact
              ? t("Chain of {n} events intact", { n: verdict.events })
              : t("Chain broken")}
          </State>
        )}
        <Action
          onClick={() =>
            void attempt(async () => setVerdict(await callService("auth", "/audit/verification")))
          }
        >
          {t("Verify the chain")}
        </Action>
      </div>
      <Loading of={loaded}>
        {({ events, next_cursor: next }) => (
          <>
            {events.length === 0 && <Empty title={t("No event matches")} />}
            {events.length > 0 && (
              <Table
                label={t("Audit")}
                rows={events}
                idOf={({ seq }) => String(seq)}
                selected={queryValue("sel")}
                onSelect={({ seq }) => setQuery({ sel: String(seq) })}
                columns={[
                  {
                    title: t("Time"),
                    kind: "w-l",
                    render: ({ at }) => <span class="i3">{formatMoment(at)}</span>,
                  },
                  { title: t("Action"), kind: "w-l mono", render: ({ action: name }) => name },
                  {
                    title: t("Actor"),
                    kind: "mono wide-only",
                    render: ({ actor }) => <span class="i2">{actor}</span>,
                  },
                  {
                    title: t("Target"),
                    kind: "mono wide-only",
                    render: ({ target }) => <span class="i2">{target ?? "–"}</span>,
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

function MomentField(props: { label: string; value: string; onChange: (value: string) => void }) {
  return (
    <label class="moment">
      <span>{props.label}</span>
      <input
        class="field field-auto"
        type="datetime-local"
        value={props.value}
        onChange={(event) => props.onChange(event.currentTarget.value)}
      />
    </label>
  );
}

function setTime(range: { from?: string; to?: string }): void {
  setQuery({ ...range, cursor: undefined });
}

/** The instant of a local time; undefined if there is none. */
function toInstant(local: string): string | undefined {
  const time = new Date(local);
  return local === "" || Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}
