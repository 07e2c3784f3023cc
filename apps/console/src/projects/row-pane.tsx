// The selected row: its values whole, what it refers to and what refers to it, and ways to copy, change and delete it.
import { useState } from "preact/hooks";
import { api } from "../session/session.ts";
import { send } from "../api/api.ts";
import { formatJson } from "../format/format.ts";
import { href } from "../router/router.ts";
import { Action, Section } from "../view/controls.tsx";
import { colourJson } from "../view/json.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { CopyMenu } from "./copy-menu.tsx";
import {
  type Cell,
  type DataRow,
  type DataTable,
  describeCell,
  DOTS,
  type InputCell,
  keyOf,
  toInput,
} from "./data.ts";
import { mayUse, type TableName } from "./database-frame.tsx";
import { DeleteRowDialog } from "./delete-row-dialog.tsx";
import { dataPath, tableApi } from "./paths.ts";
import { RowDialog } from "./row-dialog.tsx";

const JSON_TEXT = /^\s*[[{]/;

/** Properties of the pane. */
interface RowPaneProps {
  name: TableName;
  table: DataTable;
  tables: readonly DataTable[];
  kind: "sqlite" | "postgres";
  row: DataRow;
  mayEdit: boolean;
  onChanged: () => void;
}

export function RowPane(props: RowPaneProps) {
  const { name, table, row, mayEdit, onChanged } = props;
  const [dialog, setDialog] = useState<"edit" | "delete" | undefined>(undefined);
  const close = (): void => setDialog(undefined);
  return (
    <>
      <Section title={t("Row")} action={<CopyMenu table={table} row={row} />}>
        {mayEdit && keyOf(row) !== undefined && (
          <p class="acts">
            <Action onClick={() => setDialog("edit")} icon="edit">
              {t("Change…")}
            </Action>
            <Action onClick={() => setDialog("delete")} icon="trash" kind="bad">
              {t("Delete…")}
            </Action>
          </p>
        )}
        <dl class="values">
          {table.columns.map((column, index) => (
            <ValueRow
              key={column.name}
              name={name}
              row={row}
              column={column}
              cell={row.values[index] ?? null}
              target={findTarget(props, column.name, row.values[index] ?? null)}
            />
          ))}
        </dl>
      </Section>
      <Referencing {...props} />
      {dialog === "edit" && (
        <RowDialog name={name} table={table} row={row} onClose={close} onDone={onChanged} />
      )}
      {dialog === "delete" && (
        <DeleteRowDialog name={name} table={table} row={row} onClose={close} onDone={onChanged} />
      )}
    </>
  );
}

/** Address of the row that a value refers to. */
function findTarget({ name, table }: RowPaneProps, column: string, cell: Cell): string | undefined {
  const reference = table.references.find(
    ({ columns }) => columns.length === 1 && columns[0] === column,
  );
  const value = toInput(cell);
  if (reference === undefined || value === undefined || value === null) return undefined;
  return pathToRows(name, reference.table, reference.to[0] ?? "id", value);
}

function pathToRows(name: TableName, table: string, column: string, value: InputCell): string {
  const where = JSON.stringify([{ column, op: "eq", value }]);
  return `${dataPath(name.project, name.database, table)}?where=${encodeURIComponent(where)}`;
}

function ValueRow(props: {
  name: TableName;
  row: DataRow;
  column: DataTable["columns"][number];
  cell: Cell;
  target: string | undefined;
}) {
  const { column, cell, target } = props;
  const { text, kind } = describeCell(cell);
  return (
    <>
      <dt>
        <span class="mono">{column.name}</span> <small class="i3">{column.type}</small>
      </dt>
      <dd class={`mono ${kind}`}>
        {typeof cell === "string" && cell !== "" ? (
          <pre class="value" tabIndex={0}>
            {JSON_TEXT.test(cell) ? colourJson(formatJson(cell)) : cell}
          </pre>
        ) : (
          text
        )}
        {target !== undefined && (
          <a class="link" href={href(target)}>
            {t("Open the row")} →
          </a>
        )}
        <MoreOfValue {...props} />
      </dd>
    </>
  );
}

// Values that are cut or hidden are fetched on request.
function MoreOfValue(props: {
  name: TableName;
  row: DataRow;
  column: DataTable["columns"][number];
  cell: Cell;
}) {
  const { name, row, column, cell } = props;
  const [shown, setShown] = useState<string | undefined>(undefined);
  const key = keyOf(row);
  const isHidden = cell !== null && typeof cell === "object" && "hidden" in cell;
  const isPart = cell !== null && typeof cell === "object" && "bytes" in cell;
  if (key === undefined || (!isHidden && !isPart)) return null;
  const read = async (): Promise<Response> =>
    send(api("runtime", `${tableApi(name.project, name.database, name.table)}/value`), {
      method: "POST",
      json: { key, column: column.name },
    });
  const download = async (): Promise<void> => {
    const url = URL.createObjectURL(await (await read()).blob());
    const link = document.createElement("a");
    link.href = url;
    link.download = `${name.table}-${column.name}`;
    link.click();
    URL.revokeObjectURL(url);
  };
  if (isPart) {
    return <Action onClick={() => void attempt(download)}>{t("Download")}</Action>;
  }
  return shown === undefined ? (
    <Action
      onClick={() => void attempt(async () => setShown(await (await read()).text()))}
      blocked={mayUse("read", name.project) ? undefined : DOTS}
    >
      {t("Show (audited)")}
    </Action>
  ) : (
    <pre class="value" tabIndex={0}>
      {shown}
    </pre>
  );
}

/** Rows of other tables that refer to this one. */
function Referencing({ name, table, row }: RowPaneProps) {
  const links = table.referenced_by.flatMap(({ columns, table: other, to }) => {
    if (columns.length !== 1) return [];
    const index = table.columns.findIndex((column) => column.name === (to[0] ?? table.key?.[0]));
    const value = toInput(row.values[index] ?? null);
    if (value === undefined || value === null) return [];
    return [{ other, column: columns[0]!, path: pathToRows(name, other, columns[0]!, value) }];
  });
  if (links.length === 0) return null;
  return (
    <Section title={t("Rows that refer to it")}>
      <ul class="plain-list">
        {links.map(({ other, column, path }) => (
          <li key={`${other} ${column}`}>
            <a class="link mono" href={href(path)}>
              {other}.{column}
            </a>
          </li>
        ))}
      </ul>
    </Section>
  );
}
