// The rows of a table: pages, filters, sort, hidden columns, and the selected row beside them.
import { useState } from "preact/hooks";
import { withQuery } from "../api/api.ts";
import { formatNumber } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { api, callService } from "../session/session.ts";
import { useCommands } from "../stage/stage.ts";
import { Action } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split } from "../view/pane.tsx";
import { Loading, Problem } from "../view/problem.tsx";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { type CellEditing, useCellEditing } from "./cell-editing.ts";
import { type DataRow, type DataTable, idOf, type RowPage } from "./data.ts";
import {
  DatabaseFrame,
  explainBlockedLock,
  isUnlocked,
  useDatabase,
  type TableName,
} from "./database-frame.tsx";
import { Filters, readConditions, type Condition } from "./filters.tsx";
import { tableApi } from "./paths.ts";
import { DataGrid } from "./grid.tsx";
import { RowDialog } from "./row-dialog.tsx";
import { RowPane } from "./row-pane.tsx";
import { loadTables } from "./tables.tsx";

const PAGE = 200;

export function TablePage(name: TableName) {
  const state = useDatabase(name);
  const loaded = useLoad(`tables ${name.project} ${name.database}`, async () => loadTables(name));
  const [isAdding, setAdding] = useState(false);
  const table = loaded.data.value?.find((one) => one.name === name.table);
  const mayEdit = isUnlocked.value && state?.mode === "edit" && table !== undefined;
  const blocked = table === undefined ? undefined : explainReadOnly(table);
  return (
    <DatabaseFrame
      {...name}
      tab="data"
      mode={state?.mode}
      actions={
        mayEdit ? (
          <Action onClick={() => setAdding(true)} icon="plus" blocked={blocked}>
            {t("New row")}
          </Action>
        ) : undefined
      }
    >
      <Loading of={loaded}>
        {(tables) =>
          table === undefined ? (
            <Empty title={t("There is no such table")} />
          ) : (
            <Rows
              name={name}
              table={table}
              tables={tables}
              kind={state?.kind ?? "sqlite"}
              mayEdit={mayEdit && blocked === undefined}
              locked={blocked ?? explainLock(name.project, state?.mode)}
            />
          )
        }
      </Loading>
      {isAdding && table !== undefined && (
        <RowDialog name={name} table={table} onClose={() => setAdding(false)} />
      )}
    </DatabaseFrame>
  );
}

/** The reason why rows of a table cannot be changed; undefined if they can. */
function explainReadOnly({ kind, key, row_id: rowId }: DataTable): string | undefined {
  if (kind !== "table") return t("Rows of a view cannot be changed here");
  return key === null || rowId === "ctid" ? t("A table without a key can only be read") : undefined;
}

/** The reason why the rows of a table that has a key cannot be changed yet. */
function explainLock(project: string, mode: "read" | "edit" | undefined): string {
  return (
    explainBlockedLock(project, mode) ?? t("The rows are locked: “Unlock” lets you change them")
  );
}

/** Properties of the rows of a table. */
interface RowsProps {
  name: TableName;
  table: DataTable;
  tables: readonly DataTable[];
  kind: "sqlite" | "postgres";
  mayEdit: boolean;
  /** The reason why cells cannot be edited now. */
  locked: string;
}

function Rows({ name, table, tables, kind, mayEdit, locked }: RowsProps) {
  const conditions = readConditions(queryValue("where"));
  const sort = queryValue("sort");
  const cursor = queryValue("cursor");
  const query = {
    filter: conditions.length === 0 ? undefined : JSON.stringify(conditions),
    sort,
  };
  const path = tableApi(name.project, name.database, name.table);
  const loaded = useLoad(JSON.stringify([path, query, cursor]), async () =>
    callService<RowPage>("runtime", withQuery(`${path}/rows`, { ...query, cursor, limit: PAGE })),
  );
  const hidden = new Set(
    queryValue("hide")
      .split("\n")
      .filter((one) => one !== ""),
  );
  const items = loaded.data.value?.items ?? [];
  const at = items.findIndex((row, index) => idOf(row, index) === queryValue("row"));
  const reload = (): void => void loaded.reload();
  const editing = useCellEditing(name, table, { rows: items, reload: () => loaded.reload() });
  useCommands([{ label: t("Load again"), icon: "again", run: reload }]);
  return (
    <Split
      pane={
        at === -1 ? undefined : (
          <RowPane
            key={queryValue("row")}
            {...{ name, table, tables, kind, mayEdit }}
            row={items[at]!}
            onChanged={reload}
          />
        )
      }
      onClosePane={() => setQuery({ row: undefined })}
    >
      <Tools table={table} conditions={conditions} hidden={hidden} path={path} onReload={reload} />
      <Loading of={loaded}>
        {(page) => (
          <RowTable
            {...{ name, table, page, hidden, sort }}
            editing={mayEdit ? editing : undefined}
            onLocked={() => say(locked)}
          />
        )}
      </Loading>
    </Split>
  );
}

function RowTable(props: {
  name: TableName;
  table: DataTable;
  page: RowPage;
  hidden: ReadonlySet<string>;
  sort: string;
  editing: CellEditing | undefined;
  onLocked: () => void;
}) {
  const { name, table, page, hidden, sort, editing } = props;
  if (page.items.length === 0) return <Empty title={t("No rows")} />;
  return (
    <>
      {editing !== undefined && (
        <p class="hint grid-hint">
          {t("A cell is edited by a double click, or with the arrow keys and Enter.")}
        </p>
      )}
      {editing?.failure !== undefined && <Problem failure={editing.failure} />}
      <DataGrid
        label={table.name}
        widthsKey={`${name.project}/${name.database}/${table.name}`}
        editing={editing}
        onLocked={props.onLocked}
        columns={table.columns
          .map(({ name, type, hidden: isSecret }, index) => ({ name, type, index, isSecret }))
          .filter((column) => !hidden.has(column.name))}
        rows={page.items}
        idOf={(row: DataRow) => idOf(row, page.items.indexOf(row))}
        selected={queryValue("row")}
        onSelect={(id) => setQuery({ row: id })}
        sort={sort}
        onSort={(next) => setQuery({ sort: next, cursor: undefined, row: undefined })}
      />
      <p class="hint grid-end" role="status">
        {describePage(page)}
        {page.next_cursor !== null && (
          <>
            {" "}
            <Action onClick={() => setQuery({ cursor: page.next_cursor!, row: undefined })}>
              {t("Next page")}
            </Action>
          </>
        )}
        {queryValue("cursor") !== "" && (
          <>
            {" "}
            <Action onClick={() => setQuery({ cursor: undefined, row: undefined })}>
              {t("First page")}
            </Action>
          </>
        )}
      </p>
    </>
  );
}

function describePage({ items, truncated: isTruncated }: RowPage): string {
  const n = formatNumber(items.length);
  if (isTruncated) return t("{n} rows; the page ends early, as its values are large.", { n });
  return items.length === 1 ? t("1 row on this page") : t("{n} rows on this page", { n });
}

function Tools(props: {
  table: DataTable;
  conditions: readonly Condition[];
  hidden: ReadonlySet<string>;
  path: string;
  onReload: () => void;
}) {
  const { table, conditions, hidden, path, onReload } = props;
  const change = (next: readonly Condition[]): void =>
    setQuery({
      where: next.length === 0 ? undefined : JSON.stringify(next),
      cursor: undefined,
      row: undefined,
    });
  const filter = conditions.length === 0 ? undefined : JSON.stringify(conditions);
  return (
    <div class="bar bar-wrap">
      <Filters table={table} conditions={conditions} onChange={change} />
      <details class="choices">
        <summary class="btn sm">{t("Columns")}</summary>
        <div class="choices-list">
          {table.columns.map(({ name }) => (
            <label key={name} class="check">
              <input
                type="checkbox"
                checked={!hidden.has(name)}
                onChange={() => {
                  const next = new Set(hidden);
                  if (!next.delete(name)) next.add(name);
                  setQuery({ hide: [...next].join("\n") }, { replace: true });
                }}
              />
              <span class="mono">{name}</span>
            </label>
          ))}
        </div>
      </details>
      <details class="choices">
        <summary class="btn sm">{t("Export")}</summary>
        <div class="choices-list">
          {["csv", "json", "sql"].map((format) => (
            <a
              key={format}
              class="link"
              href={api("runtime", withQuery(`${path}/export`, { format, filter }))}
              download={`${table.name}.${format}`}
            >
              {format.toUpperCase()}
            </a>
          ))}
        </div>
      </details>
      <Action onClick={onReload} icon="again">
        {t("Load again")}
      </Action>
    </div>
  );
}
