// Changes of rows at the runtime, each with the values that were shown.
import { ApiFailure } from "../api/api.ts";
import { callService } from "../session/session.ts";
import { t } from "../words/words.ts";
import { type Cell, type DataRow, type DataTable, type InputCell, toInput } from "./data.ts";
import type { TableName } from "./database-frame.tsx";
import { tableApi } from "./paths.ts";

const CHANGES_CHARACTERS_MAX = 1_000;
const VALUE_CHARACTERS_MAX = 100;

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
  { body, table }: { body: ShownRow & { set: Record<string, InputCell> }; table: DataTable },
): Promise<void> {
  try {
    await callService("runtime", rowsPath(name), { method: "PATCH", json: body });
  } catch (error) {
    throw explainConflict(error, table, body.before);
  }
}

/** Deletes a row, or counts what falls with it. */
export async function deleteRow(
  name: TableName,
  { body, table }: { body: ShownRow; table: DataTable },
  isTrial: boolean,
): Promise<{ rows: number; others: number | null }> {
  try {
    const path = `${rowsPath(name)}?trial=${isTrial}`;
    return await callService("runtime", path, { method: "DELETE", json: body });
  } catch (error) {
    throw explainConflict(error, table, body.before);
  }
}

function rowsPath({ project, database, table }: TableName): string {
  return `${tableApi(project, database, table)}/rows`;
}

// Both versions: what was shown, and what the row has now.
function explainConflict(error: unknown, table: DataTable, before: ShownRow["before"]): unknown {
  if (!(error instanceof ApiFailure) || error.status !== 409) return error;
  const { present } = error.details;
  if (present === null) {
    return new ApiFailure(409, { detail: t("This row has been deleted meanwhile.") });
  }
  const values = Array.isArray(present) ? (present as Cell[]) : undefined;
  if (values === undefined) return error;
  const changes = table.columns.flatMap(({ name }, index) => {
    const now = toInput(values[index] ?? null);
    const isShown = Object.hasOwn(before, name) && now !== undefined;
    if (!isShown || JSON.stringify(now) === JSON.stringify(before[name])) return [];
    return [`${name}: ${show(before[name]!)} → ${show(now)}`];
  });
  const what = changes.join("; ").slice(0, CHANGES_CHARACTERS_MAX);
  return new ApiFailure(409, {
    detail: `${t(
      "Another person or the project has changed this row. Close this form, load again, and repeat it.",
    )} ${what}`,
  });
}

function show(value: InputCell): string {
  return JSON.stringify(value).slice(0, VALUE_CHARACTERS_MAX);
}
