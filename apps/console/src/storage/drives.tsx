// Drives with their space, and the upkeep of stored files: the check of all of them, damage, garbage.
import type { Answer } from "../contract/answer.ts";
import { formatBytes, formatMoment, formatNumber } from "../format/format.ts";
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

const EVERY_MS = 3_000;

type Drive = Answer<"vault", "GET /drives">["drives"][number];

type Scrub = Maintenance["scrub"];

type Maintenance = Answer<"vault", "GET /maintenance">;

const KINDS: Readonly<Record<Drive["state"], StateKind>> = {
  present: "ok",
  healing: "warn",
  absent: "bad",
};

export function DrivesPage() {
  useCrumbs([{ label: t("Storage") }, { label: t("Drives") }]);
  const drives = useLoad(
    "drives",
    async () => (await callService<Answer<"vault", "GET /drives">>("vault", "/drives")).drives,
    EVERY_MS,
  );
  const upkeep = useLoad(
    "maintenance",
    () => callService<Maintenance>("vault", "/maintenance"),
    EVERY_MS,
  );
  const start = (): void => {
    void attempt(async () => {
      await callService("vault", "/maintenance/scrub", { method: "POST", json: {} });
      await upkeep.reload();
    }, t("The check of all files has begun."));
  };
  useCommands([{ label: t("Check all files"), icon: "again", run: start }]);
  return (
    <Split pane={<Loading of={upkeep}>{(found) => <Upkeep upkeep={found} />}</Loading>}>
      <Title
        actions={
          <Action onClick={start} icon="again">
            {t("Check all files")}
          </Action>
        }
      >
        {t("Drives")}
      </Title>
      <Loading of={drives}>
        {(list) => (
          <Table
            label={t("Drives")}
            rows={list}
            isTall
            idOf={({ slot }) => String(slot)}
            columns={[
              {
                title: t("Folder"),
                render: ({ folder, slot, reason }) => (
                  <span class="two">
                    <b class="mono">{folder}</b>
                    <small>{reason ?? t("place {n}", { n: slot })}</small>
                  </span>
                ),
              },
              {
                title: t("Free"),
                kind: "w-s",
                isNumber: true,
                render: ({ free_bytes: free }) => formatBytes(free),
              },
              {
                title: t("Size"),
                kind: "w-s wide-only",
                isNumber: true,
                render: ({ total_bytes: total }) => formatBytes(total),
              },
              {
                title: t("State"),
                kind: "w-m",
                render: ({ state }) => <State kind={KINDS[state]}>{describeState(state)}</State>,
              },
            ]}
          />
        )}
      </Loading>
    </Split>
  );
}

function describeState(state: Drive["state"]): string {
  if (state === "present") return t("in use");
  return state === "healing" ? t("healing") : t("Missing");
}

function Upkeep({ upkeep }: { upkeep: Maintenance }) {
  const { scrub, quarantine } = upkeep;
  return (
    <>
      <Section title={t("Check of all files")}>
        <State kind={scrub.state === "idle" ? "ok" : "warn"}>
          {scrub.state === "idle" ? t("not running") : t("running")}
        </State>
        {scrub.progress !== null && <Progress progress={scrub.progress} />}
      </Section>
      {scrub.last !== null && <LastCheck last={scrub.last} />}
      <Section title={t("Upkeep")}>
        <Facts>
          <FactRow term={t("Garbage")} isMono>
            {formatBytes(upkeep.garbage_bytes)}
          </FactRow>
          <FactRow term={t("Quarantined")} isMono>
            {formatNumber(quarantine.files)}, {formatBytes(quarantine.bytes)}
          </FactRow>
          <FactRow term={t("Damaged blocks")} isMono>
            <Bad count={upkeep.corrupt_blocks} />
          </FactRow>
          <FactRow term={t("Damaged rows")} isMono>
            <Bad count={upkeep.damaged_rows} />
          </FactRow>
        </Facts>
      </Section>
    </>
  );
}

function Progress({ progress }: { progress: NonNullable<Scrub["progress"]> }) {
  const { files_done: done, files_total: total, bytes_done: bytes } = progress;
  return (
    <p class="i2">
      <progress max={Math.max(1, total)} value={done} aria-label={t("Check of all files")} />{" "}
      {t("{n} of {all} files, {size}", {
        n: formatNumber(done),
        all: formatNumber(total),
        size: formatBytes(bytes),
      })}
    </p>
  );
}

function LastCheck({ last }: { last: NonNullable<Scrub["last"]> }) {
  return (
    <Section title={t("Last check")} note={formatMoment(last.ended_at)}>
      <Facts>
        <FactRow term={t("Files")}>{formatNumber(last.files)}</FactRow>
        <FactRow term={t("Size")}>{formatBytes(last.bytes)}</FactRow>
        <FactRow term={t("Healed")}>{formatNumber(last.healed)}</FactRow>
        <FactRow term={t("Damaged")} isMono>
          <Bad count={last.damaged} />
        </FactRow>
        <FactRow term={t("Missing")}>
          <Bad count={last.missing} />
        </FactRow>
      </Facts>
    </Section>
  );
}

function Bad({ count }: { count: number }) {
  return <span class={count > 0 ? "bad" : ""}>{formatNumber(count)}</span>;
}
