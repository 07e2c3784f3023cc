// Dead letters by cause: look at one, patch all of a cause, requeue.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatJson, formatMoment, formatNumber, formatTime } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, AreaField, FactRow, Facts, Section } from "../view/controls.tsx";
import { Diff } from "../view/diff.tsx";
import { JsonBlock, colourJson } from "../view/json.tsx";
import { toFailure, useLoad } from "../view/load.ts";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { attempt, say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import {
  loadCauses,
  loadLetters,
  readPatch,
  requeue,
  tryChange,
  type Cause,
  type Choice,
  type Letter,
  type RequeueResult,
  type TypedPatch,
} from "./letters.ts";
import { chosenTenant } from "./broker.ts";
import { Suggestion } from "./suggestion.tsx";
import { describeTenant, TenantChip } from "./tenant.tsx";

const TRIED = 5;
const TYPING_MS = 300;
const SHOWN_CHARACTERS = 120;
const EXAMPLE = '[{ "op": "move", "from": "/currency/code", "path": "/currency" }]';

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
    <>
      <h1 class="hidden">{t("Dead letters")}</h1>
      {only === undefined && chosenTenant() !== undefined && (
        <div class="bar">
          <TenantChip />
        </div>
      )}
      <Loading of={loaded}>
        {({ causes, total, isComplete }) => {
          const isShared = causes.some(({ tenant }) => tenant !== undefined && tenant !== "");
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
              <nav class="causes" aria-label={t("Causes")}>
                {!isComplete && (
                  <p class="hint">
                    {t(
                      "Counted: the newest {n} of {all}. Requeueing all of a cause includes the rest.",
                      {
                        n: formatNumber(causes.reduce((sum, { count }) => sum + count, 0)),
                        all: formatNumber(total),
                      },
                    )}
                  </p>
                )}
                {causes.map((one) => (
                  <button
                    key={one.id}
                    type="button"
                    class="cause"
                    aria-current={one === cause ? "true" : undefined}
                    onClick={() => setQuery({ cause: one.id, sel: undefined })}
                  >
                    <b class="cut">{one.reason}</b>
                    <span class={one === cause ? "n bad" : "n"}>{formatCount(one)}</span>
                    <small class="cut">
                      {isShared ? `${one.topic} · ${describeTenant(one.tenant ?? "")}` : one.topic}
                    </small>
                    <small>{t("since {time}", { time: formatTime(one.first * 1000) })}</small>
                  </button>
                ))}
              </nav>
              <Letters key={cause.id} cause={cause} onChanged={() => void loaded.reload()} />
            </div>
          );
        }}
      </Loading>
    </>
  );
}

function formatCount({ count, isComplete }: Cause): string {
  return isComplete ? formatNumber(count) : t("{n}+", { n: formatNumber(count) });
}

/** The trial of a patch on some letters. */
interface Trial {
  /** Payloads as they would be sent, by message. */
  payloads: ReadonlyMap<string, string>;
  error: string | undefined;
}

const NO_TRIAL: Trial = { payloads: new Map(), error: undefined };

/** Tries the patch on the selected letter and the first ones, when typing has paused. */
function useTrial({ topic, tenant }: Cause, ids: readonly string[], patch: TypedPatch): Trial {
  const [trial, setTrial] = useState(NO_TRIAL);
  const key = JSON.stringify([ids, patch]);
  useEffect(() => {
    setTrial(NO_TRIAL);
    if (patch.operations === undefined || ids.length === 0) return undefined;
    let isCurrent = true;
    const timer = setTimeout(() => {
      void tryChange({ topic, tenant, ids }, patch)
        .then(describeTrial)
        .catch((error: unknown) => ({ ...NO_TRIAL, error: toFailure(error).message }))
        .then((found) => isCurrent && setTrial(found));
    }, TYPING_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [key]);
  return trial;
}

function describeTrial({ items }: RequeueResult): Trial {
  return {
    payloads: new Map(
      items.flatMap(({ message_id: id, payload }): [string, string][] =>
        payload === undefined ? [] : [[id, payload]],
      ),
    ),
    error: items.find(({ error }) => error !== null)?.error?.detail,
  };
}

function Letters({ cause, onChanged }: { cause: Cause; onChanged: () => void }) {
  const [checked, setChecked] = useState<ReadonlySet<string>>(new Set());
  const [text, setText] = useState("");
  const field = useRef<HTMLDivElement>(null);
  const loaded = useLoad(cause.id, () => loadLetters(cause));
  const letters = loaded.data.value ?? [];
  const selected = letters.find(({ message_id: id }) => id === queryValue("sel")) ?? letters[0];
  const patch = useMemo(() => readPatch(text), [text]);
  const tried = [selected, ...letters.slice(0, TRIED)].flatMap((one) => one?.message_id ?? []);
  const trial = useTrial(cause, [...new Set(tried)], patch);
  const error = patch.error ?? trial.error;
  const isWaiting = patch.operations !== undefined && trial.payloads.size === 0;
  const blocked =
    error !== undefined
      ? t("The patch fails: {text}", { text: error })
      : isWaiting
        ? t("The patch is being tried")
        : undefined;
  const run = (choice: Choice): void => {
    void attempt(async () => {
      const { succeeded, failed, items } = await requeue(choice, patch);
      const name = cause.topic;
      say(t("{n} messages were requeued to {name}.", { n: formatNumber(succeeded), name }));
      if (failed === 0) return;
      const reason = items.find((one) => one.error !== null)?.error?.detail ?? "";
      throw new Error(t("{n} stay: {text}", { n: formatNumber(failed), text: reason }));
    }).finally(() => {
      setChecked(new Set());
      void loaded.reload();
      onChanged();
    });
  };
  const { topic, tenant } = cause;
  const runSome = (ids: readonly string[]): void => run({ topic, tenant, ids });
  const chosen = letters.flatMap(({ message_id: id }) => (checked.has(id) ? [id] : []));
  useCommands([
    {
      label: chosen.length === 0 ? t("Requeue this one") : t("Requeue {n}", { n: chosen.length }),
      key: "r",
      icon: "again",
      run: () => {
        const ids = chosen.length > 0 ? chosen : tried.slice(0, 1);
        if (blocked === undefined && ids.length > 0) runSome(ids);
      },
    },
    {
      label: t("Patch all of this cause"),
      key: "e",
      icon: "edit",
      run: () => field.current?.querySelector("textarea")?.focus(),
    },
  ]);
  return (
    <Split
      pane={
        selected === undefined ? undefined : (
          <>
            <LetterFacts letter={selected} />
            <Section title={t("Payload as it will be sent")}>
              <PatchedPayload
                before={selected.original_payload}
                after={trial.payloads.get(selected.message_id)}
              />
              <div class="space" />
              <div ref={field}>
                <AreaField
                  label={t("JSON Patch for all of this cause")}
                  value={text}
                  rows={4}
                  onInput={setText}
                />
              </div>
              <p class={error === undefined ? "hint" : "hint hint-bad"} role="status">
                {text === ""
                  ? EXAMPLE
                  : (blocked ?? t("Tried on {n} of them", { n: trial.payloads.size }))}
              </p>
            </Section>
            <div class="dock">
              <small>{t("To the end of {name}", { name: topic })}</small>
              <Action
                onClick={() => run({ topic, tenant, cause: cause.reason })}
                blocked={blocked}
                isSmall={false}
              >
                {t("Requeue all {n}", { n: formatCount(cause) })}
              </Action>
              <Action
                onClick={() => runSome([selected.message_id])}
                blocked={blocked}
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
      <Suggestion
        cause={cause}
        letters={letters}
        onApplied={() => {
          void loaded.reload();
          onChanged();
        }}
      />
      <div class="bar">
        <span class="tag tag-accent">{t("{n} selected", { n: chosen.length })}</span>
        <span class="grow" />
        <Action
          onClick={() => runSome(chosen)}
          kind="primary"
          icon="again"
          shortcut="r"
          blocked={chosen.length === 0 ? t("Select messages first") : blocked}
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

function LetterFacts({ letter }: { letter: Letter }) {
  return (
    <Section title={letter.message_id.slice(0, 18)} note={letter.topic}>
      <Facts>
        <FactRow term={t("reason")}>
          <span class="bad wrap">{letter.failure_reason}</span>
        </FactRow>
        <FactRow term={t("died")}>{formatMoment(letter.timestamp * 1000)}</FactRow>
        <FactRow term={t("requeued")}>{letter.retry_count}</FactRow>
      </Facts>
    </Section>
  );
}

function PatchedPayload({ before, after }: { before: string; after: string | undefined }) {
  if (after === undefined) return <JsonBlock text={before} />;
  return <Diff before={formatJson(before)} after={formatJson(after)} />;
}
