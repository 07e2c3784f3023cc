// Statements on a database: run, stopped, planned, saved; changes are counted first and then confirmed.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Answer } from "../contract/answer.ts";
import { formatNumber } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { Action, Section, TextField } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { toFailure, useLoad } from "../view/load.ts";
import { Empty, Split } from "../view/pane.tsx";
import { Problem } from "../view/problem.tsx";
import type { ApiFailure } from "../api/api.ts";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { hasNumbers, type InputCell, type QueryAnswer } from "./data.ts";
import {
  DatabaseFrame,
  isUnlocked,
  mayUse,
  useDatabase,
  type DatabaseName,
} from "./database-frame.tsx";
import { DataGrid } from "./grid.tsx";
import { databaseApi } from "./paths.ts";
import { SaveDialog } from "./save-dialog.tsx";
import { SqlEditor } from "./sql-editor.tsx";
import { SqlSide } from "./sql-side.tsx";
import { listParameters } from "./sql-words.ts";
import { loadTables } from "./tables.tsx";

const CHANGE = /^(?:\s|--[^\n]*\n|\/\*[^]*?\*\/)*(?:insert|update|delete|replace|merge|with)\b/i;

type Queries = Answer<"runtime", "GET /projects/{project}/databases/{database}/queries">;

/** A line of a plan. */
interface PlanLine {
  depth: number;
  text: string;
}

/** The result of the last run. */
type Result =
  | { kind: "rows"; answer: QueryAnswer }
  | { kind: "plan"; lines: PlanLine[] }
  | { kind: "counted"; rows: number; others: number | null; text: string }
  | { kind: "changed"; rows: number }
  | { kind: "failed"; failure: ApiFailure; text: string };

/** Runs statements of the page, one at a time. */
function useStatements({ project, database }: DatabaseName) {
  const [result, setResult] = useState<Result | undefined>(undefined);
  const [isRunning, setRunning] = useState(false);
  const stop = useRef<AbortController | undefined>(undefined);
  const base = databaseApi(project, database);
  const perform = async (
    text: string,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<void> => {
    stop.current?.abort();
    const mine = (stop.current = new AbortController());
    setRunning(true);
    try {
      const found = await work(mine.signal);
      if (stop.current === mine) setResult(found);
    } catch (error) {
      if (mine.signal.aborted) setResult(undefined);
      else setResult({ kind: "failed", failure: toFailure(error), text });
    } finally {
      if (stop.current === mine) setRunning(false);
    }
  };
  const query = async (json: object, signal: AbortSignal): Promise<QueryAnswer> =>
    callService<QueryAnswer>("runtime", `${base}/query`, { method: "POST", json, signal });
  return {
    result,
    isRunning,
    stop: () => stop.current?.abort(),
    run: (sql: string, parameters: Record<string, InputCell>, isChange: boolean) =>
      perform(sql, async (signal) => {
        if (!isChange) {
          return { kind: "rows", answer: await query({ sql, parameters }, signal) };
        }
        const { changes } = await query({ sql, parameters, write: {} }, signal);
        const { rows, others } = changes!;
        return { kind: "counted", rows, others, text: sql };
      }),
    confirm: (sql: string, parameters: Record<string, InputCell>, expected: number) =>
      perform(sql, async (signal) => {
        const { changes } = await query({ sql, parameters, write: { expected } }, signal);
        const { rows, others, kept } = changes!;
        return kept ? { kind: "changed", rows } : { kind: "counted", rows, others, text: sql };
      }),
    plan: (sql: string, parameters: Record<string, InputCell>) =>
      perform(sql, async (signal) => {
        const options = { method: "POST", json: { sql, parameters }, signal };
        const { lines } = await callService<{ lines: PlanLine[] }>(
          "runtime",
          `${base}/plan`,
          options,
        );
        return { kind: "plan", lines };
      }),
  };
}

export function SqlPage(name: DatabaseName) {
  const state = useDatabase(name);
  const [text, setText] = useState(queryValue("sql"));
  const [values, setValues] = useState<Readonly<Record<string, string>>>({});
  const [isSaving, setSaving] = useState(false);
  const tables = useLoad(`tables ${name.project} ${name.database}`, async () => loadTables(name));
  const statements = useStatements(name);
  useSavedQuery(name, (sql) => {
    setText(sql);
    if (listParameters(sql).length === 0) void statements.run(sql, {}, false);
  });
  const names = (tables.data.value ?? []).flatMap((table) => [
    table.name,
    ...table.columns.map((column) => column.name),
  ]);
  const parameters = listParameters(text);
  const bound = Object.fromEntries(parameters.map((one) => [one, readValue(values[one])]));
  const isChange = isUnlocked.value && state?.mode === "edit" && CHANGE.test(text);
  const run = (): void => {
    setQuery({ sql: text }, { replace: true });
    void statements.run(text, bound, isChange);
  };
  return (
    <DatabaseFrame {...name} tab="sql" mode={state?.mode}>
      <Split pane={<SqlSide name={name} onChoose={setText} revision={isSaving ? 1 : 0} />}>
        <SqlEditor
          value={text}
          names={names}
          fault={findFault(statements.result, text)}
          onInput={setText}
          onRun={run}
        />
        <Parameters
          names={parameters}
          values={values}
          onInput={(name, value) => setValues((before) => ({ ...before, [name]: value }))}
        />
        <Buttons
          project={name.project}
          kind={state?.kind}
          isRunning={statements.isRunning}
          isChange={isChange}
          isEmpty={text.trim() === ""}
          onRun={run}
          onStop={statements.stop}
          onPlan={() => void statements.plan(text, bound)}
          onSave={() => setSaving(true)}
        />
        <ResultView
          result={statements.result}
          onConfirm={(rows) => void statements.confirm(text, bound, rows)}
          isSame={(sql) => sql === text}
        />
      </Split>
      {isSaving && <SaveDialog name={name} sql={text} onClose={() => setSaving(false)} />}
    </DatabaseFrame>
  );
}

/** Calls the function once with the text of the saved query that the address names. Other texts of an address are not run. */
function useSavedQuery({ project, database }: DatabaseName, onFound: (sql: string) => void): void {
  const wanted = queryValue("query");
  const source = queryValue("from");
  useEffect(() => {
    if (wanted === "") return;
    void attempt(async () => {
      const path = `${databaseApi(project, database)}/queries`;
      const { items } = await callService<Queries>("runtime", path);
      const found = items.find((one) => one.name === wanted && one.source === source);
      if (found !== undefined) onFound(found.sql);
    });
  }, [wanted, source]);
}

function Parameters(props: {
  names: readonly string[];
  values: Readonly<Record<string, string>>;
  onInput: (name: string, value: string) => void;
}) {
  const { names, values, onInput } = props;
  if (names.length === 0) return null;
  return (
    <div class="sql-parameters">
      {names.map((name) => (
        <TextField
          key={name}
          label={`:${name}`}
          isMono
          value={values[name] ?? ""}
          onInput={(value) => onInput(name, value)}
        />
      ))}
    </div>
  );
}

/** The place of the fault of the last run, as long as the text is still the same. */
function findFault(result: Result | undefined, text: string): number | undefined {
  if (result?.kind !== "failed" || result.text !== text) return undefined;
  const { position } = result.failure.details;
  return typeof position === "number" ? position : undefined;
}

// Numbers are sent as such: SQLite compares them with columns that have no type.
function readValue(text = ""): InputCell {
  if (/^-?\d{1,15}$/.test(text)) return Number(text);
  return /^-?\d{16,19}$/.test(text) ? { int: text } : text;
}

function Buttons(props: {
  project: string;
  kind: "sqlite" | "postgres" | undefined;
  isRunning: boolean;
  isChange: boolean;
  isEmpty: boolean;
  onRun: () => void;
  onStop: () => void;
  onPlan: () => void;
  onSave: () => void;
}) {
  const { project, isRunning, isChange, isEmpty } = props;
  const blocked = mayUse("query", project)
    ? isEmpty
      ? t("The statement is empty")
      : undefined
    : t("Requires the permission {name}", { name: "data:query" });
  return (
    <div class="bar">
      {isRunning ? (
        <Action onClick={props.onStop} icon="pause">
          {t("Stop the statement")}
        </Action>
      ) : (
        <Action
          onClick={props.onRun}
          kind="primary"
          icon="play"
          blocked={blocked}
          shortcut="Ctrl ↵"
        >
          {isChange ? t("Count the rows") : t("Run")}
        </Action>
      )}
      <Action onClick={props.onPlan} blocked={blocked}>
        {t("Plan")}
      </Action>
      <Action onClick={props.onSave} blocked={blocked}>
        {t("Save…")}
      </Action>
      <span class="hint">
        {isChange
          ? t("It runs in a transaction that is rolled back, and says how many rows it changes.")
          : t("Statements can only read here; columns hidden elsewhere are shown.")}
        {props.kind === "postgres" &&
          ` ${t("Functions that act outside of the database run with the rights of the project's role.")}`}
      </span>
    </div>
  );
}

function ResultView(props: {
  result: Result | undefined;
  onConfirm: (rows: number) => void;
  isSame: (sql: string) => boolean;
}) {
  const { result, onConfirm, isSame } = props;
  if (result === undefined) return null;
  switch (result.kind) {
    case "failed":
      return <Refused failure={result.failure} />;
    case "plan":
      return (
        <ul class="plan" aria-label={t("Plan")}>
          {result.lines.map(({ depth, text }, index) => (
            <li key={index} class="mono" style={{ paddingLeft: `${depth * 20}px` }}>
              {text}
            </li>
          ))}
        </ul>
      );
    case "counted":
      return (
        <div class="banner" role="status">
          {describeCount(result.rows, result.others)}{" "}
          <Action
            kind="bad"
            blocked={isSame(result.text) ? undefined : t("The statement has changed")}
            onClick={() => onConfirm(result.rows)}
          >
            {t("Change {n} rows", { n: formatNumber(result.rows) })}
          </Action>
        </div>
      );
    case "changed":
      return (
        <p class="banner" role="status">
          {t("{n} rows are changed.", { n: formatNumber(result.rows) })}
        </p>
      );
    case "rows":
      return <Answer answer={result.answer} />;
    default:
      return result satisfies never;
  }
}

/** A refusal; that of a change of the schema has the file of a migration. */
function Refused({ failure }: { failure: ApiFailure }) {
  const migration = failure.details["migration"] as { path: string; text: string } | undefined;
  if (failure.details["reason"] !== "schema" || migration === undefined) {
    return <Problem failure={failure} />;
  }
  return (
    <Section
      title={t("Make a migration")}
      action={<CopyButton text={migration.text} label={t("Copy the text of the file")} />}
    >
      <p class="lead">
        {t(
          "Migrations own the schema, so nothing was changed. Put this file into the project's folder: the project applies it when it starts.",
        )}
      </p>
      <p class="mono">{migration.path}</p>
      <pre class="code-frame" tabIndex={0} aria-label={t("Text of the migration")}>
        {migration.text}
      </pre>
    </Section>
  );
}

function Answer({ answer }: { answer: QueryAnswer }) {
  const { columns, rows, truncated, elapsed_ms: ms } = answer;
  const shown = { n: formatNumber(rows.length), ms: formatNumber(ms) };
  return (
    <>
      <p class="hint grid-hint" role="status">
        {truncated
          ? t("The first {n} rows, in {ms} ms.", shown)
          : rows.length === 1
            ? t("1 row in {ms} ms.", shown)
            : t("{n} rows in {ms} ms.", shown)}
      </p>
      {rows.length === 0 ? (
        <Empty title={t("No rows")} />
      ) : (
        <DataGrid
          label={t("Rows")}
          columns={columns.map(({ name, type }, index) => ({
            name,
            type,
            index,
            isNumber: type === "" && hasNumbers(rows.map((row) => row[index] ?? null)),
          }))}
          rows={rows.map((values) => ({ values }))}
        />
      )}
    </>
  );
}

function describeCount(rows: number, others: number | null): string {
  const n = formatNumber(rows);
  if (others === null) return t("It changes {n} rows. Nothing is changed yet.", { n });
  return t(
    "It changes {n} rows, and {m} others by foreign keys and triggers. Nothing is changed yet.",
    { n, m: formatNumber(others) },
  );
}
