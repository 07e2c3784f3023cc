// SQL over the metadata of messaging, with examples.
import { useSignal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { Answer } from "../contract/answer.ts";
import type { ApiFailure } from "../api/api.ts";
import { formatNumber } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action, AreaField, Section } from "../view/controls.tsx";
import { toFailure } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Problem } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { callBroker } from "./broker.ts";
import { TenantChip } from "./tenant.tsx";

type Result = Answer<"pulse", "POST /sqlite/query">;

const ROWS_HIGH = 6;
/** Tables with their columns, as the API's documentation describes them. */
const TABLES: readonly (readonly [name: string, columns: string])[] = [
  [
    "topics",
    "name, partitions, messages, bytes, cleanup_policy, retention_ms, retention_bytes, has_schema, has_transform, dlq_topic, subscribers, queue_depth",
  ],
  ["partitions", "topic, partition, log_start, log_end, stable_end, bytes"],
  ["groups", "name, kind, members, topics, lag"],
  ["offsets", "group_name, topic, partition, committed_offset, latest_offset, lag, committed_at"],
  ["subscriptions", "topic, protocol, transport, client, user, address, since"],
  ["dlq", "topic, dlq_topic, total, cause, count, first_seen, last_seen"],
  ["schemas", "topic, kind, document"],
  ["transforms", "topic, bytes, sha256"],
  ["rules", "role, topics, allow"],
  ["stats", "name, value"],
];

/** A statement in the address, its rows, and examples beside them. */
export function QueryPage() {
  useCrumbs([{ label: t("Messaging") }, { label: t("Query") }]);
  const [text, setText] = useState(queryValue("sql") || listExamples()[0]!.sql);
  const result = useSignal<Result | undefined>(undefined);
  const failure = useSignal<ApiFailure | undefined>(undefined);
  const isRunning = useSignal(false);
  const run = async (sql: string): Promise<void> => {
    setText(sql);
    setQuery({ sql }, { replace: true });
    isRunning.value = true;
    failure.value = undefined;
    try {
      result.value = await callBroker<Result>("/sqlite/query", { method: "POST", json: { sql } });
    } catch (error) {
      result.value = undefined;
      failure.value = toFailure(error);
    } finally {
      isRunning.value = false;
    }
  };
  // An address with a statement is that of its rows; it can only read.
  useEffect(() => {
    const sent = queryValue("sql");
    if (sent !== "") void run(sent);
  }, []);
  return (
    <Split pane={<Outline onChoose={(sql) => void run(sql)} />}>
      <Title actions={<TenantChip />}>{t("Query")}</Title>
      <form
        class="query-form"
        onSubmit={(event) => {
          event.preventDefault();
          void run(text);
        }}
      >
        <AreaField label={t("One SELECT")} value={text} rows={ROWS_HIGH} onInput={setText} />
        <button type="submit" class="btn pri" disabled={isRunning.value}>
          {t("Run")}
        </button>
      </form>
      {failure.value !== undefined && <Problem failure={failure.value} />}
      {result.value !== undefined && <ResultTable result={result.value} />}
    </Split>
  );
}

function ResultTable({ result }: { result: Result }) {
  const { columns, rows, truncated, elapsed_ms: elapsed } = result;
  return (
    <>
      <p class="hint query-done" role="status">
        {truncated
          ? t("The first {n} rows, in {ms} ms.", { n: formatNumber(rows.length), ms: elapsed })
          : t("{n} rows in {ms} ms.", { n: formatNumber(rows.length), ms: elapsed })}
      </p>
      {rows.length === 0 ? (
        <Empty title={t("No rows")} />
      ) : (
        <Table
          label={t("Rows")}
          rows={rows.map((cells, index) => ({ cells, index }))}
          idOf={({ index }) => String(index)}
          columns={columns.map(({ name }, column) => ({
            title: name,
            kind: "mono",
            render: ({ cells }: { cells: Result["rows"][number] }) =>
              cells[column] === null ? <span class="i3">null</span> : String(cells[column]),
          }))}
        />
      )}
    </>
  );
}

function Outline({ onChoose }: { onChoose: (sql: string) => void }) {
  return (
    <>
      <Section title={t("Examples")}>
        {listExamples().map(({ label, sql }) => (
          <p key={label}>
            <Action onClick={() => onChoose(sql)}>{label}</Action>
          </p>
        ))}
      </Section>
      <Section title={t("Tables")}>
        <dl class="query-tables">
          {TABLES.map(([name, columns]) => (
            <div key={name}>
              <dt class="mono">{name}</dt>
              <dd class="mono i3">{columns}</dd>
            </div>
          ))}
        </dl>
      </Section>
    </>
  );
}

function listExamples(): { label: string; sql: string }[] {
  return [
    {
      label: t("The largest topics"),
      sql: "select name, messages, bytes from topics order by bytes desc limit 20",
    },
    {
      label: t("Groups that lag"),
      sql: "select group_name, topic, sum(lag) as lag from offsets\ngroup by 1, 2 having sum(lag) > 0 order by lag desc",
    },
    {
      label: t("Topics without a reader"),
      sql: "select name, messages from topics\nwhere subscribers = 0 and name not in (select topic from offsets)",
    },
    {
      label: t("Causes of dead letters"),
      sql: "select cause, sum(count) as letters from dlq group by cause order by letters desc",
    },
  ];
}
