// Dead letters by cause: look at one, patch all of a cause, requeue.
import { useMemo, useState } from "preact/hooks";
import { segment, withQuery } from "../api/api.ts";
import { formatJson, formatMoment, formatNumber, formatTime } from "../format/format.ts";
import { patchJson } from "../format/json-patch.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, AreaField, FactRow, Facts, Section } from "../view/controls.tsx";
import { Diff } from "../view/diff.tsx";
import { JsonBlock, colourJson } from "../view/json.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { attempt, say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import type { Topic } from "./messages.ts";

const TOPICS_MAX = 200;
const LETTERS_MAX = 1000;
const TRIED = 5;
const SHOWN_CHARACTERS = 120;

interface Summary {
  total: number;
  clusters: { reason: string; count: number; first_seen: number; last_seen: number }[];
}

interface Cause {
  id: string;
  topic: string;
  reason: string;
  count: number;
  /** Epoch s. */
  first: number;
  last: number;
}

interface Letter {
  message_id: string;
  source_topic: string;
  original_payload: string;
  failure_reason: string;
  /** Epoch s. */
  timestamp: number;
  retry_count: number;
}

/** The page: dead letters of all topics. */
export function DeadLettersPage() {
  useCrumbs([{ label: t("Messaging") }, { label: t("Dead letters") }]);
  return <DeadLetters />;
}

/** Dead letters of one topic, or of all. */
export function DeadLetters({ only }: { only?: string }) {
  const loaded = useLoad(`causes ${only ?? ""}`, () => loadCauses(only));
  const wanted = queryValue("cause");
  return (
    <Loading of={loaded}>
      {(causes) => {
        const cause = causes.find(({ id }) => id === wanted) ?? causes[0];
        if (cause === undefined) {
          return (
            <Empty title={t("No dead letters")}>
              <p>{t("Messages that no consumer could process would be listed here.")}</p>
            </Empty>
          );
        }
        return (
          <div class="dead">
            <h1 class="hidden">{t("Dead letters")}</h1>
            <nav class="causes" aria-label={t("Causes")}>
              {causes.map((one) => (
                <button
                  key={one.id}
                  type="button"
                  class="cause"
                  aria-current={one === cause ? "true" : undefined}
                  onClick={() => setQuery({ cause: one.id, sel: undefined })}
                >
                  <b class="cut">{one.reason}</b>
                  <span class={one === cause ? "n bad" : "n"}>{formatNumber(one.count)}</span>
                  <small class="cut">{one.topic}</small>
                  <small>{t("since {time}", { time: formatTime(one.first * 1000) })}</small>
                </button>
              ))}
            </nav>
            <Letters key={cause.id} cause={cause} onChanged={() => void loaded.reload()} />
          </div>
        );
      }}
    </Loading>
  );
}

async function loadCauses(only: string | undefined): Promise<Cause[]> {
  let names = only === undefined ? [] : [only];
  if (only === undefined) {
    const { topics } = await callService<{ topics: Topic[] }>("pulse", "/topics");
    names = topics.slice(0, TOPICS_MAX).map(({ name }) => name);
  }
  const summaries = await Promise.all(
    names.map(async (topic) => {
      const path = `/topics/${segment(topic)}/dlq/summary`;
      const { clusters } = await callService<Summary>("pulse", path);
      return clusters.map((cluster): Cause => ({
        id: `${topic} ${cluster.reason}`,
        topic,
        reason: cluster.reason,
        count: cluster.count,
        first: cluster.first_seen,
        last: cluster.last_seen,
      }));
    }),
  );
  return summaries.flat().sort((one, other) => other.count - one.count);
}

function Letters({ cause, onChanged }: { cause: Cause; onChanged: () => void }) {
  const [checked, setChecked] = useState<ReadonlySet<string>>(new Set());
  const [patch, setPatch] = useState("");
  const path = `/topics/${segment(cause.topic)}/dlq`;
  const loaded = useLoad(cause.id, async () => {
    const found = await callService<{ messages: Letter[] }>(
      "pulse",
      withQuery(path, { limit: LETTERS_MAX }),
    );
    return found.messages.filter(({ failure_reason: reason }) => reason === cause.reason);
  });
  const letters = loaded.data.value ?? [];
  const selected = letters.find(({ message_id: id }) => id === queryValue("sel")) ?? letters[0];
  const trial = useMemo(() => tryPatch(letters, patch), [letters, patch]);
  const requeue = async (list: readonly Letter[]): Promise<void> => {
    const payloads = list.map((letter) =>
      patch === "" ? undefined : patchJson(letter.original_payload, patch),
    );
    for (const [index, letter] of list.entries()) {
      const payload = payloads[index];
      const json = {
        message_id: letter.message_id,
        ...(payload === undefined ? {} : { payload }),
      };
      await callService("pulse", `${path}/requeue`, { method: "POST", json });
    }
    say(t("{n} messages were requeued to {name}.", { n: list.length, name: cause.topic }));
  };
  const run = (list: readonly Letter[]): void => {
    void attempt(() => requeue(list)).then(() => {
      setChecked(new Set());
      void loaded.reload();
      onChanged();
      return undefined;
    });
  };
  const chosen = letters.filter(({ message_id: id }) => checked.has(id));
  const isBlocked =
    trial.error === undefined ? undefined : t("The patch fails: {text}", { text: trial.error });
  useCommands([
    {
      label: chosen.length === 0 ? t("Requeue this one") : t("Requeue {n}", { n: chosen.length }),
      key: "r",
      icon: "again",
      run: () => {
        const list = chosen.length === 0 && selected !== undefined ? [selected] : chosen;
        if (isBlocked === undefined && list.length > 0) run(list);
      },
    },
  ]);
  return (
    <Split
      pane={
        selected === undefined ? undefined : (
          <>
            <Section title={selected.message_id.slice(0, 18)} note={selected.source_topic}>
              <Facts>
                <FactRow term={t("reason")}>
                  <span class="bad wrap">{selected.failure_reason}</span>
                </FactRow>
                <FactRow term={t("died")}>{formatMoment(selected.timestamp * 1000)}</FactRow>
                <FactRow term={t("requeued")}>{selected.retry_count}</FactRow>
              </Facts>
              <div class="space" />
              <p class="cap">{t("Payload as it will be sent")}</p>
              <PatchedPayload letter={selected} patch={patch} />
              <div class="space" />
              <AreaField
                label={t("JSON Patch for all of this cause")}
                value={patch}
                rows={4}
                onInput={setPatch}
              />
              <p class={trial.error === undefined ? "hint" : "hint hint-bad"} role="status">
                {patch === ""
                  ? '[{ "op": "move", "from": "/currency/code", "path": "/currency" }]'
                  : (isBlocked ?? t("Tried on {n} of them", { n: trial.tried }))}
              </p>
            </Section>
            <div class="dock">
              <small>{t("To the end of {name}", { name: cause.topic })}</small>
              <span class="grow" />
              <Action onClick={() => run(letters)} blocked={isBlocked} isSmall={false}>
                {t("Requeue all {n}", { n: letters.length })}
              </Action>
              <Action
                onClick={() => run([selected])}
                blocked={isBlocked}
                kind="primary"
                isSmall={false}
              >
                {t("Requeue this one")}
              </Action>
            </div>
          </>
        )
      }
      onClosePane={queryValue("sel") === "" ? undefined : () => setQuery({ sel: undefined })}
    >
      <div class="bar">
        <span class="tag tag-accent">{t("{n} selected", { n: chosen.length })}</span>
        <span class="grow" />
        <Action
          onClick={() => run(chosen)}
          kind="primary"
          icon="again"
          shortcut="r"
          blocked={chosen.length === 0 ? t("Select messages first") : isBlocked}
        >
          {t("Requeue {n}", { n: chosen.length })}
        </Action>
      </div>
      <Loading of={loaded}>
        {(list) => (
          <Table
            label={t("Dead letters")}
            rows={list}
            idOf={({ message_id: id }) => id}
            selected={selected?.message_id}
            onSelect={({ message_id: id }) => setQuery({ sel: id })}
            checked={checked}
            onCheck={setChecked}
            columns={[
              {
                title: t("Died"),
                kind: "w-s mono",
                render: ({ timestamp }) => formatTime(timestamp * 1000),
              },
              {
                title: t("Payload"),
                kind: "mono",
                render: ({ original_payload: payload }) =>
                  colourJson(payload.slice(0, SHOWN_CHARACTERS)),
              },
              {
                title: t("Tries"),
                kind: "w-xs wide-only",
                isNumber: true,
                render: ({ retry_count: count }) => count,
              },
            ]}
          />
        )}
      </Loading>
    </Split>
  );
}

function PatchedPayload({ letter, patch }: { letter: Letter; patch: string }) {
  const before = letter.original_payload;
  if (patch === "") return <JsonBlock text={before} />;
  try {
    return <Diff before={formatJson(before)} after={formatJson(patchJson(before, patch))} />;
  } catch {
    return <JsonBlock text={before} />;
  }
}

/** Applies the patch to some letters without sending anything. */
function tryPatch(letters: readonly Letter[], patch: string): { tried: number; error?: string } {
  if (patch === "") return { tried: 0 };
  let tried = 0;
  for (const letter of letters.slice(0, TRIED)) {
    try {
      patchJson(letter.original_payload, patch);
    } catch (error) {
      return { tried, error: error instanceof Error ? error.message : String(error) };
    }
    tried += 1;
  }
  return { tried };
}
