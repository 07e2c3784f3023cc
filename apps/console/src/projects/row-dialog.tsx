// A form for a row: new values of one that was shown, or of a new one.
import { useState } from "preact/hooks";
import { withQuery } from "../api/api.ts";
import { callService } from "../session/session.ts";
import { FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import {
  type DataRow,
  type DataTable,
  describeCell,
  editableText,
  type InputCell,
  keyOf,
  readInput,
  type RowPage,
} from "./data.ts";
import type { TableName } from "./database-frame.tsx";
import { tableApi } from "./paths.ts";
import { changeRow, readBefore } from "./row-changes.ts";

const CHOICES_MAX = 50;
const LONG_TEXT = /[\n]|.{80}/;

type Column = DataTable["columns"][number];

/** A value of the form. `isSet` is false for a column that keeps its value, or gets its default. */
interface Field {
  text: string;
  isNull: boolean;
  isSet: boolean;
}

/** Properties of the form. */
interface RowDialogProps {
  name: TableName;
  table: DataTable;
  /** Undefined for a new row. */
  row?: DataRow;
  onClose: () => void;
  onDone?: () => void;
}

export function RowDialog({ name, table, row, onClose, onDone }: RowDialogProps) {
  const [fields, setFields] = useState<Readonly<Record<string, Field>>>({});
  const path = `${tableApi(name.project, name.database, name.table)}/rows`;
  const save = async (): Promise<void> => {
    const values = readValues(table, fields);
    if (row === undefined) {
      await callService("runtime", path, { method: "POST", json: { values } });
      say(t("The row was added."));
    } else {
      const body = { key: keyOf(row)!, before: readBefore(table, row), set: values };
      await changeRow(name, { body, table });
      say(t("The row was changed."));
    }
    onDone?.();
  };
  const columns = table.columns.filter(({ generated }) => !generated);
  return (
    <FormDialog
      title={row === undefined ? t("New row") : t("Change the row")}
      submit={row === undefined ? t("Add") : t("Save")}
      isWide
      isDisabled={row !== undefined && Object.values(fields).every(({ isSet }) => !isSet)}
      onClose={onClose}
      onSubmit={save}
    >
      {columns.map((column) => (
        <ColumnField
          key={column.name}
          name={name}
          table={table}
          column={column}
          cell={row?.values[table.columns.indexOf(column)]}
          field={fields[column.name]}
          onChange={(field) => setFields((before) => ({ ...before, [column.name]: field }))}
        />
      ))}
    </FormDialog>
  );
}

function readValues(
  table: DataTable,
  fields: Readonly<Record<string, Field>>,
): Record<string, InputCell> {
  const entries = Object.entries(fields).filter(([, { isSet }]) => isSet);
  return Object.fromEntries(
    entries.map(([column, { text, isNull }]) => {
      const type = table.columns.find((one) => one.name === column)?.type ?? "";
      return [column, isNull ? null : readInput(text, type)];
    }),
  );
}

/** Properties of a field. */
interface ColumnFieldProps {
  name: TableName;
  table: DataTable;
  column: Column;
  cell: DataRow["values"][number] | undefined;
  field: Field | undefined;
  onChange: (field: Field) => void;
}

function ColumnField({ name, table, column, cell, field, onChange }: ColumnFieldProps) {
  const isNew = cell === undefined;
  const shown = isNew ? "" : editableText(cell);
  const text = field?.isSet === true ? field.text : (shown ?? "");
  const isNull = field?.isSet === true ? field.isNull : cell === null;
  const reference = table.references.find(
    ({ columns }) => columns.length === 1 && columns[0] === column.name,
  );
  const input = (next: string): void => onChange({ text: next, isNull: false, isSet: true });
  const list = `list-${column.name}`;
  const hint = describeHint(column, isNew, shown === undefined && !isNew);
  return (
    <div class="label column-field">
      <label>
        <span>
          <span class="mono">{column.name}</span> <small class="i3">{column.type}</small>
        </span>
        {LONG_TEXT.test(text) ? (
          <textarea
            class="field mono"
            rows={6}
            value={text}
            onInput={(event) => input(event.currentTarget.value)}
          />
        ) : (
          <input
            class="field mono"
            value={text}
            placeholder={
              isNull ? "null" : shown === undefined && !isNew ? describeCell(cell).text : ""
            }
            list={reference === undefined ? undefined : list}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => input(event.currentTarget.value)}
          />
        )}
      </label>
      {reference !== undefined && (
        <ReferencedRows
          id={list}
          name={{ ...name, table: reference.table }}
          column={reference.to[0]}
        />
      )}
      {column.nullable && (
        <label class="check">
          <input
            type="checkbox"
            checked={isNull}
            onChange={() => onChange({ text, isNull: !isNull, isSet: true })}
          />
          null
        </label>
      )}
      {hint !== undefined && <small class="hint">{hint}</small>}
    </div>
  );
}

function describeHint(column: Column, isNew: boolean, isPart: boolean): string | undefined {
  if (isPart) return t("It is not shown whole: a new value replaces it.");
  if (!isNew) return undefined;
  if (column.default !== null) return t("Default: {value}", { value: column.default });
  return column.nullable ? undefined : t("required");
}

/** Keys of the rows that a column may refer to, with a name beside each. */
function ReferencedRows(props: { id: string; name: TableName; column: string | undefined }) {
  const { id, name, column } = props;
  const path = tableApi(name.project, name.database, name.table);
  const loaded = useLoad(`references ${path}`, async () =>
    callService<RowPage>("runtime", withQuery(`${path}/rows`, { limit: CHOICES_MAX })),
  );
  const rows = loaded.data.value?.items ?? [];
  return (
    <datalist id={id}>
      {rows.map((row, index) => {
        const key = column === undefined ? undefined : row.key?.[column];
        const cell = key ?? Object.values(row.key ?? {})[0] ?? null;
        const label = row.values.find((value) => typeof value === "string" && value !== "");
        return (
          <option key={index} value={describeCell(cell).text}>
            {typeof label === "string" ? label.slice(0, 60) : ""}
          </option>
        );
      })}
    </datalist>
  );
}
