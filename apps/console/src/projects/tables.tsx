// The tables of a database.
import type { Answer } from "../contract/answer.ts";
import { formatNumber } from "../format/format.ts";
import { href, navigate, queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { FilterField } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Empty } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import type { DataTable } from "./data.ts";
import { DatabaseFrame, useDatabase, type DatabaseName } from "./database-frame.tsx";
import { databaseApi, dataPath } from "./paths.ts";

/** Loads the tables of a database. */
export async function loadTables({ project, database }: DatabaseName): Promise<DataTable[]> {
  const answer = await callService<
    Answer<"runtime", "GET /projects/{project}/databases/{database}/tables">
  >("runtime", `${databaseApi(project, database)}/tables`);
  return answer.items;
}

/** Number of rows of a table, marked if it is an estimate. */
function describeRows({ rows, rows_estimated: isEstimated }: DataTable): string {
  if (rows === null) return "–";
  return isEstimated ? `≈ ${formatNumber(rows)}` : formatNumber(rows);
}

export function TablesPage(name: DatabaseName) {
  const state = useDatabase(name);
  const loaded = useLoad(`tables ${name.project} ${name.database}`, async () => loadTables(name));
  const filter = queryValue("filter");
  return (
    <DatabaseFrame {...name} tab="data" mode={state?.mode}>
      <div class="sheet">
        <div class="bar">
          <FilterField
            label={t("Table or column")}
            value={filter}
            isMono
            onInput={(value) => setQuery({ filter: value }, { replace: true })}
          />
        </div>
        <Loading of={loaded}>
          {(tables) => {
            const wanted = filter.toLowerCase();
            const shown = tables.filter(
              ({ name: table, columns }) =>
                table.toLowerCase().includes(wanted) ||
                columns.some((column) => column.name.toLowerCase().includes(wanted)),
            );
            if (shown.length === 0) {
              return (
                <Empty title={tables.length === 0 ? t("No table yet") : t("No table matches")}>
                  <p>{t("Migrations of the project make tables.")}</p>
                </Empty>
              );
            }
            return <TableList of={name} tables={shown} />;
          }}
        </Loading>
      </div>
    </DatabaseFrame>
  );
}

function TableList({ of, tables }: { of: DatabaseName; tables: readonly DataTable[] }) {
  const pathOf = (table: string): string => dataPath(of.project, of.database, table);
  return (
    <Table
      label={t("Tables")}
      rows={tables}
      idOf={({ name }) => name}
      onSelect={({ name }) => navigate(pathOf(name))}
      columns={[
        {
          title: t("Table"),
          kind: "mono",
          sort: ({ name }) => name,
          render: ({ name }) => <a href={href(pathOf(name))}>{name}</a>,
        },
        {
          title: t("Kind"),
          kind: "w-m wide-only",
          render: ({ kind }) => describeKind(kind),
        },
        {
          title: t("Columns"),
          kind: "w-s wide-only",
          isNumber: true,
          render: ({ columns }) => formatNumber(columns.length),
        },
        {
          title: t("Rows"),
          kind: "w-s",
          isNumber: true,
          sort: ({ rows }) => rows ?? -1,
          render: (table) => (
            <span title={table.rows_estimated ? t("estimated") : undefined}>
              {describeRows(table)}
            </span>
          ),
        },
      ]}
    />
  );
}

function describeKind(kind: DataTable["kind"]): string {
  if (kind === "view") return t("view");
  return kind === "virtual" ? t("virtual table") : t("table");
}
