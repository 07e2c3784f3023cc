// Editing of a value in its cell: one at a time, saved with the values that were shown.
import { useState } from "preact/hooks";
import type { ApiFailure } from "../api/api.ts";
import { toFailure } from "../view/load.ts";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import {
  type Cell,
  type DataRow,
  type DataTable,
  editableText,
  idOf,
  keyOf,
  readInput,
} from "./data.ts";
import type { TableName } from "./database-frame.tsx";
import { changeRow, readBefore } from "./row-changes.ts";

const LINE_END = /[\r\n]/;

/** The cell that is being edited. */
interface EditedCell {
  readonly row: string;
  /** Name of its column. */
  readonly column: string;
}

/** The editing of a grid. */
export interface CellEditing {
  readonly cell: EditedCell | undefined;
  readonly isBusy: boolean;
  readonly failure: ApiFailure | undefined;
  /** The reason why a value is not edited in its cell; undefined if it is. */
  readonly explain: (column: string, value: Cell) => string | undefined;
  /** True if the column takes null. */
  readonly takesNull: (column: string) => boolean;
  readonly begin: (cell: EditedCell) => void;
  readonly cancel: () => void;
  /** Saves a text, or null, and shows the row as it is then. False if it was refused: the cell stays open. */
  readonly save: (cell: EditedCell, text: string | null) => Promise<boolean>;
}

/** Edits cells of a table's rows; `reload` shows them again. */
export function useCellEditing(
  name: TableName,
  table: DataTable,
  { rows, reload }: { rows: readonly DataRow[]; reload: () => Promise<void> },
): CellEditing {
  const [cell, setCell] = useState<EditedCell | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  const cancel = (): void => {
    setCell(undefined);
    setFailure(undefined);
  };
  const find = (column: string) => table.columns.find((one) => one.name === column);
  const save: CellEditing["save"] = async (edited, text) => {
    const row = rows.find((one, index) => idOf(one, index) === edited.row);
    const column = find(edited.column);
    const value = row?.values[table.columns.findIndex((one) => one === column)] ?? null;
    const before = value === null ? null : editableText(value);
    if (row === undefined || column === undefined || text === before) {
      cancel();
      return true;
    }
    setBusy(true);
    try {
      const set = { [column.name]: text === null ? null : readInput(text, column.type) };
      const body = { key: keyOf(row)!, before: readBefore(table, row), set };
      await changeRow(name, { body, table });
      await reload();
      say(t("The row was changed."));
      cancel();
      return true;
    } catch (error) {
      setFailure(toFailure(error));
      return false;
    } finally {
      setBusy(false);
    }
  };
  return {
    cell,
    isBusy,
    failure,
    explain: (column, value) => explainForm(find(column), value),
    takesNull: (column) => find(column)?.nullable === true,
    begin: (next) => {
      setFailure(undefined);
      setCell(next);
    },
    cancel,
    save,
  };
}

function explainForm(column: DataTable["columns"][number] | undefined, value: Cell) {
  if (column === undefined || column.generated) return t("The database computes this value");
  const text = editableText(value);
  const isLine = text !== undefined && !LINE_END.test(text);
  return isLine ? undefined : t("This value is changed in the form");
}
