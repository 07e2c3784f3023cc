// Changes of rows at the runtime, each with the values that were shown.
import { ApiFailure } from "../api/api.ts";
import { callService } from "../session/session.ts";
import { t } from "../words/words.ts";
import { type DataRow, type DataTable, type InputCell, toInput } from "./data.ts";
import type { TableName } from "./database-frame.tsx";
import { tableApi } from "./paths.ts";

/** A row as it was shown. */
interface ShownRow {
  key: Record<string, InputCell>;
  before: Record<string, InputCell>;
}

/** The values that were shown whole. */
export function readBefore(table: DataTable, row: DataRow): Record<string, InputCell> {
  return Object.fromEntries(
    table.columns.flatMap(({ name, hidden }, index) => {
      const value = hidden ? undefined : toInput(row.values[index] ?? null);
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}

/** Changes values of a row. Throws an explanation if the row was changed meanwhile. */
export async function changeRow(
  name: TableName,
  json: ShownRow & { set: Record<string, InputCell> },
): Promise<void> {
  try {
    await callService("runtime", rowsPath(name), { method: "PATCH", json });
  } catch (error) {
    throw explainConflict(error);
  }
}

/** Deletes a row, or counts what falls with it. */
export async function deleteRow(
  name: TableName,
  json: ShownRow,
  isTrial: boolean,
): Promise<{ rows: number; others: number }> {
  try {
    const path = `${rowsPath(name)}?trial=${isTrial}`;
    return await callService("runtime", path, { method: "DELETE", json });
  } catch (error) {
    throw explainConflict(error);
  }
}

function rowsPath({ project, database, table }: TableName): string {
  return `${tableApi(project, database, table)}/rows`;
}

function explainConflict(error: unknown): unknown {
  if (!(error instanceof ApiFailure) || error.status !== 409) return error;
  return new ApiFailure(409, {
    detail: t(
      "Another person or the project has changed this row. Close this form, load again, and repeat it.",
    ),
  });
}
