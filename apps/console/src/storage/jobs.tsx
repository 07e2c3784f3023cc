// Background work of storage: what runs and how far it is, how the last rounds ended; rounds are started and cancelled.
import type { Answer } from "../contract/answer.ts";
import { segment } from "../api/api.ts";
import {
  formatAgo,
  formatBytes,
  formatDuration,
  formatMoment,
  formatNumber,
  formatTime,
} from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, Section } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State, type StateKind } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";

const EVERY_MS = 2_000;

type Job = Answer<"vault", "GET /jobs">["items"][number];

export function JobsPage() {
  useCrumbs([{ label: t("Storage") }, { label: t("Jobs") }]);
  const loaded = useLoad(
    "jobs",
    async () => (await callService<Answer<"vault", "GET /jobs">>("vault", "/jobs")).items,
    EVERY_MS,
  );
  const jobs = loaded.data.value ?? [];
  const act = ({ kind }: Job, action: "start" | "cancel"): void => {
    void attempt(async () => {
      await callService("vault", `/jobs/${segment(kind)}/${action}`, { method: "POST", json: {} });
      await loaded.reload();
    });
  };
  useCommands(
    jobs.flatMap((job) => [
      ...(job.actions.includes("start")
        ? [
            {
              label: t("Start: {name}", { name: describeKind(job.kind).name }),
              icon: "play" as const,
              run: () => act(job, "start"),
            },
          ]
        : []),
      ...(job.actions.includes("cancel")
        ? [
            {
              label: t("Cancel: {name}", { name: describeKind(job.kind).name }),
              icon: "close" as const,
              run: () => act(job, "cancel"),
            },
          ]
        : []),
    ]),
  );
  const selected = queryValue("job");
  const chosen = jobs.find(({ kind }) => kind === selected);
  return (
    <Split
      pane={chosen === undefined ? undefined : <JobPane job={chosen} act={act} />}
      onClosePane={() => setQuery({ job: undefined })}
    >
      <Title>{t("Jobs")}</Title>
      <Loading of={loaded}>
        {(list) => (
          <Table
            label={t("Jobs")}
            rows={list}
            isTall
            idOf={({ kind }) => kind}
            selected={selected}
            onSelect={({ kind }) => setQuery({ job: kind })}
            columns={[
              {
                title: t("Job"),
                render: ({ kind }) => (
                  <span class="two">
                    <b>{describeKind(kind).name}</b>
                    <small>{describeKind(kind).task}</small>
                  </span>
                ),
              },
              { title: t("State"), kind: "w-l", render: (job) => <JobState job={job} /> },
              {
                title: t("Next run"),
                kind: "w-m wide-only",
                isNumber: true,
                render: ({ next_at: at }) =>
                  at === null ? "–" : <span title={formatMoment(at)}>{formatNext(at)}</span>,
              },
              {
                title: t("Actions"),
                kind: "w-m num",
                render: (job) => <JobActions job={job} act={act} />,
              },
            ]}
          />
        )}
      </Loading>
    </Split>
  );
}

function describeKind(kind: string): { name: string; task: string } {
  switch (kind) {
    case "scrub":
      return { name: t("Check of all files"), task: t("finds damage and heals it") };
    case "lifecycle":
      return { name: t("Lifecycle rules"), task: t("delete what has expired") };
    case "compaction":
      return { name: t("Compaction"), task: t("frees the space of deleted objects") };
    case "index_copy":
      return { name: t("Copy of the index"), task: t("checks every row and copies it") };
    case "healing":
      return { name: t("Healing of drives"), task: t("fills drives that were missing") };
    case "transition":
      return { name: t("Transitions"), task: t("move what is due to remotes") };
    case "rewrap":
      return { name: t("Rotation of keys"), task: t("wraps keys of objects again") };
    case "rewrite_heads":
      return { name: t("Heads of records"), task: t("write the former keys of objects anew") };
    default:
      return { name: kind, task: "" };
  }
}

// A round of the next days has a date.
function formatNext(at: string): string {
  return Date.parse(at) - Date.now() < 86_400_000 ? formatTime(at) : formatMoment(at);
}

function formatShare(progress: Job["progress"]): string {
  if (progress === null || progress.total === null || progress.total === 0) return "";
  return `, ${formatNumber(Math.floor((100 * progress.done) / progress.total))} %`;
}

const OUTCOMES: Readonly<Record<NonNullable<Job["last"]>["outcome"], StateKind>> = {
  completed: "ok",
  cancelled: "off",
  failed: "bad",
};

function describeOutcome(outcome: NonNullable<Job["last"]>["outcome"]): string {
  if (outcome === "completed") return t("completed");
  return outcome === "cancelled" ? t("cancelled") : t("failed");
}

function JobState({ job: { state, progress, last } }: { job: Job }) {
  if (state === "cancelling") return <State kind="warn">{t("is being cancelled")}</State>;
  if (state === "running") {
    return (
      <State kind="warn">
        {t("running")}
        {formatShare(progress)}
      </State>
    );
  }
  if (last === null) return <State kind="off">{t("not yet")}</State>;
  return (
    <State kind={OUTCOMES[last.outcome]}>
      {describeOutcome(last.outcome)}, {formatAgo(last.ended_at)}
    </State>
  );
}

interface JobProps {
  job: Job;
  act: (job: Job, action: "start" | "cancel") => void;
}

function JobActions({ job, act }: JobProps) {
  if (job.state !== "idle") {
    return (
      <Action
        onClick={() => act(job, "cancel")}
        icon="close"
        blocked={
          job.actions.includes("cancel")
            ? undefined
            : job.state === "cancelling"
              ? t("is being cancelled")
              : t("It ends by itself")
        }
      >
        {t("Cancel")}
      </Action>
    );
  }
  return (
    <Action
      onClick={() => act(job, "start")}
      icon="play"
      blocked={job.actions.includes("start") ? undefined : t("It starts by itself")}
    >
      {t("Run now")}
    </Action>
  );
}

function JobPane({ job, act }: JobProps) {
  const { last, progress } = job;
  const { name, task } = describeKind(job.kind);
  return (
    <>
      <Section title={name}>
        <p class="i2">{task}</p>
        <JobState job={job} />
        {progress !== null && <Progress label={name} progress={progress} />}
        <Facts>
          {job.started_at !== null && (
            <FactRow term={t("Started")}>{formatMoment(job.started_at)}</FactRow>
          )}
          {job.next_at !== null && (
            <FactRow term={t("Next run")}>{formatMoment(job.next_at)}</FactRow>
          )}
        </Facts>
        <p class="acts">
          <JobActions job={job} act={act} />
        </p>
      </Section>
      {last !== null && <LastRound last={last} />}
    </>
  );
}

function Progress({ label, progress }: { label: string; progress: NonNullable<Job["progress"]> }) {
  const { unit, done, total, bytes } = progress;
  const count = { n: formatNumber(done), all: formatNumber(total ?? done) };
  return (
    <p class="i2">
      <progress
        aria-label={label}
        {...(total === null ? {} : { max: Math.max(1, total), value: done })}
      />{" "}
      {unit === "buckets" ? t("{n} of {all} buckets", count) : t("{n} of {all} files", count)}
      {bytes !== null && `, ${formatBytes(bytes)}`}
    </p>
  );
}

function LastRound({ last }: { last: NonNullable<Job["last"]> }) {
  const counts = Object.entries(last.counts);
  const durationMs = Date.parse(last.ended_at) - Date.parse(last.started_at);
  return (
    <Section title={t("Last run")} note={formatMoment(last.ended_at)}>
      <Facts>
        <FactRow term={t("Outcome")}>
          <State kind={OUTCOMES[last.outcome]}>{describeOutcome(last.outcome)}</State>
        </FactRow>
        <FactRow term={t("Duration")} isMono>
          {formatDuration(durationMs)}
        </FactRow>
        {counts.map(([name, count]) => (
          <FactRow key={name} term={describeCount(name)} isMono>
            {name === "bytes" ? formatBytes(count) : formatNumber(count)}
          </FactRow>
        ))}
        {last.reason !== null && (
          <FactRow term={t("Error")} isMono>
            <span class="wrap">{last.reason}</span>
          </FactRow>
        )}
      </Facts>
    </Section>
  );
}

function describeCount(name: string): string {
  const names: Readonly<Record<string, string>> = {
    files: t("Files"),
    bytes: t("Size"),
    healed: t("Healed"),
    damaged: t("Damaged"),
    missing: t("Missing"),
    quarantined: t("Quarantined"),
    expired: t("Expired objects"),
    aborted: t("Aborted uploads"),
    moved: t("Moved objects"),
  };
  return names[name] ?? name;
}
