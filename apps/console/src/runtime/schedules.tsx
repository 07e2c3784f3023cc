// Schedules of projects: their last and next run, and a run on request.
import type { Answer } from "../contract/answer.ts";
import { formatAgo, formatDuration, formatMoment, formatTime } from "../format/format.ts";
import { href, queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, Section } from "../view/controls.tsx";
import { useLoad, type Loaded } from "../view/load.ts";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { labelOfRun, RUN, runSchedule } from "./run-schedule.ts";

const REFRESH_MS = 2_000;

/** A schedule, as the runtime describes it. */
export type Schedule = Answer<"runtime", "GET /schedules">["items"][number];

/** Loads all schedules, again every two seconds. */
export function useSchedules(): Loaded<Schedule[]> {
  return useLoad(
    "schedules",
    async () =>
      (await callService<Answer<"runtime", "GET /schedules">>("runtime", "/schedules")).items,
    REFRESH_MS,
  );
}

export function SchedulesPage() {
  useCrumbs([{ label: t("Runtime") }, { label: t("Schedules") }]);
  const loaded = useSchedules();
  useCommands(
    (loaded.data.value ?? []).map((one) => ({
      label: labelOfRun(one),
      icon: "play",
      needs: RUN,
      run: () => void runSchedule(one).then(loaded.reload),
    })),
  );
  const selected = queryValue("schedule");
  const service = queryValue("service");
  const schedule = loaded.data.value?.find(({ id }) => id === selected);
  return (
    <Split
      pane={schedule === undefined ? undefined : <SchedulePane schedule={schedule} />}
      onClosePane={() => setQuery({ schedule: undefined })}
    >
      <h1 class="hidden">{t("Schedules")}</h1>
      <Loading of={loaded}>
        {(all) => {
          const schedules = all.filter(({ service: of }) => service === "" || of === service);
          return all.length === 0 ? (
            <Empty title={t("No schedules yet")}>
              <div class="cmd">
                <code>{"every 5m { … }"}</code>
              </div>
              <p>{t("Declared in a service file of a project.")}</p>
            </Empty>
          ) : (
            <>
              <ProjectFilter of={all} value={service} />
              <ScheduleTable
                schedules={schedules}
                selected={selected}
                onSelect={({ id }) => setQuery({ schedule: id })}
                onRun={() => void loaded.reload()}
              />
            </>
          );
        }}
      </Loading>
    </Split>
  );
}

/** Chooses the schedules of one project. */
function ProjectFilter({ of: schedules, value }: { of: readonly Schedule[]; value: string }) {
  const names = new Set(schedules.map(({ service }) => service));
  if (value !== "") names.add(value);
  return (
    <div class="bar">
      <select
        class="field field-auto"
        aria-label={t("Project")}
        value={value}
        onChange={(event) => setQuery({ service: event.currentTarget.value })}
      >
        <option value="">{t("All projects")}</option>
        {[...names].toSorted().map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}

/** Schedules with their last and next run. */
export function ScheduleTable(props: {
  schedules: readonly Schedule[];
  selected: string;
  onSelect: (schedule: Schedule) => void;
  /** Called after a run was requested. */
  onRun: () => void;
}) {
  const run = (one: Schedule): void => void runSchedule(one).then(props.onRun);
  return (
    <Table
      label={t("Schedules")}
      rows={props.schedules}
      idOf={({ id }) => id}
      selected={props.selected}
      onSelect={props.onSelect}
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
          kind: "w-xl num",
          render: (one) => (
            <span class="acts">
              <LogLink service={one.service} />
              <Action
                onClick={() => run(one)}
                needs={RUN}
                blocked={one.is_running ? t("It is running") : undefined}
                icon="play"
              >
                {t("Run now")}
              </Action>
            </span>
          ),
        },
      ]}
    />
  );
}

/** A link to the log of a service. */
export function LogLink({ service }: { service: string }) {
  return (
    <a class="btn sm" href={href(`/runtime/logs?service=${encodeURIComponent(service)}`)}>
      {t("Log")}
    </a>
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
