// Schedules of projects: their last and next run, and a run on request.
import { segment } from "../api/api.ts";
import { formatAgo, formatDuration, formatMoment, formatTime } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, Section } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";

const REFRESH_MS = 2_000;

/** A schedule, as the runtime describes it. */
interface Schedule {
  id: string;
  service: string;
  name: string;
  timing: string;
  next_run_at: string | null;
  is_running: boolean;
  last_run: {
    started_at: string;
    duration_ms: number;
    outcome: "done" | "failed";
    error: string | null;
  } | null;
}

/** The page. */
export function SchedulesPage() {
  useCrumbs([{ label: t("Runtime") }, { label: t("Schedules") }]);
  const loaded = useLoad(
    "schedules",
    async () => (await callService<{ items: Schedule[] }>("runtime", "/schedules")).items,
    REFRESH_MS,
  );
  const selected = queryValue("schedule");
  const schedule = loaded.data.value?.find(({ id }) => id === selected);
  const run = (one: Schedule): void => {
    void attempt(
      async () => {
        const path = `/schedules/${segment(one.id)}/run`;
        await callService("runtime", path, { method: "POST", json: {} });
        await loaded.reload();
      },
      t("{name} runs now.", { name: one.name }),
    );
  };
  return (
    <Split
      pane={schedule === undefined ? undefined : <SchedulePane schedule={schedule} />}
      onClosePane={() => setQuery({ schedule: undefined })}
    >
      <h1 class="hidden">{t("Schedules")}</h1>
      <Loading of={loaded}>
        {(schedules) =>
          schedules.length === 0 ? (
            <Empty title={t("No schedules yet")}>
              <div class="cmd">
                <code>{"every 5m { … }"}</code>
              </div>
              <p>{t("Declared in a service file of the project where platform up was started.")}</p>
            </Empty>
          ) : (
            <Table
              label={t("Schedules")}
              rows={schedules}
              idOf={({ id }) => id}
              selected={selected}
              onSelect={({ id }) => setQuery({ schedule: id })}
              isTall
              columns={[
                {
                  title: t("Schedule"),
                  render: ({ name, service, timing }) => (
                    <span class="two">
                      <b>{name}</b>
                      <small>
                        {service} · <span class="mono">{timing}</span>
                      </small>
                    </span>
                  ),
                },
                {
                  title: t("Last run"),
                  kind: "w-l",
                  render: (one) => <LastRun schedule={one} />,
                },
                {
                  title: t("Next run"),
                  kind: "w-s wide-only",
                  isNumber: true,
                  render: ({ next_run_at: at }) =>
                    at === null ? "–" : <span title={formatMoment(at)}>{formatTime(at)}</span>,
                },
                {
                  title: t("Actions"),
                  kind: "w-s num",
                  render: (one) => (
                    <Action
                      onClick={() => run(one)}
                      needs="runtime:manage"
                      blocked={one.is_running ? t("It is running") : undefined}
                      icon="play"
                    >
                      {t("Run now")}
                    </Action>
                  ),
                },
              ]}
            />
          )
        }
      </Loading>
    </Split>
  );
}

function LastRun({ schedule: { is_running: isRunning, last_run: last } }: { schedule: Schedule }) {
  if (isRunning) return <State kind="warn">{t("running")}</State>;
  if (last === null) return <State kind="off">{t("not yet")}</State>;
  const text = `${formatAgo(last.started_at)}, ${formatDuration(last.duration_ms)}`;
  return <State kind={last.outcome === "done" ? "ok" : "bad"}>{text}</State>;
}

function SchedulePane({ schedule }: { schedule: Schedule }) {
  const { last_run: last } = schedule;
  return (
    <Section title={schedule.name}>
      <Facts>
        <FactRow term={t("Service")}>{schedule.service}</FactRow>
        <FactRow term={t("Every")} isMono>
          {schedule.timing}
        </FactRow>
        <FactRow term={t("Next run")}>{formatMoment(schedule.next_run_at)}</FactRow>
        <FactRow term={t("Last run")}>{formatMoment(last?.started_at)}</FactRow>
        {last !== null && (
          <FactRow term={t("Duration")} isMono>
            {formatDuration(last.duration_ms)}
          </FactRow>
        )}
        {last?.error !== null && last?.error !== undefined && (
          <FactRow term={t("Error")} isMono>
            {last.error}
          </FactRow>
        )}
      </Facts>
    </Section>
  );
}
