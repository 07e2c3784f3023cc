// Ways to copy a row: as a statement, as a template of the service package, as a row of a test.
import { Menu } from "../view/controls.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { type Cell, type DataRow, type DataTable, formatLiteral, quoteName } from "./data.ts";

export function CopyMenu({ table, row }: { table: DataTable; row: DataRow }) {
  const copy = (text: string): void =>
    void attempt(async () => navigator.clipboard.writeText(text), t("Copied."));
  return (
    <Menu
      label={t("Copy the row")}
      items={[
        { label: t("Copy as SQL"), onClick: () => copy(formatInsert(table, row)) },
        { label: t("Copy as code"), onClick: () => copy(formatTemplate(table, row)) },
        { label: t("Copy as test row"), onClick: () => copy(formatTestRow(table, row)) },
      ]}
    />
  );
}

/** The columns that can be written, with their values. */
function listValues({ columns }: DataTable, row: DataRow): [name: string, cell: Cell][] {
  return columns.flatMap(({ name, generated, hidden }, index) =>
    generated || hidden ? [] : [[name, row.values[index] ?? null] as [string, Cell]],
  );
}

function formatInsert(table: DataTable, row: DataRow): string {
  const values = listValues(table, row);
  const names = values.map(([name]) => quoteName(name)).join(", ");
  const literals = values.map(([, cell]) => formatLiteral(cell)).join(", ");
  return `insert into ${quoteName(table.name)} (${names}) values (${literals});`;
}

function formatTemplate(table: DataTable, row: DataRow): string {
  const values = listValues(table, row);
  const names = values.map(([name]) => quoteName(name)).join(", ");
  const marks = values.map(([, cell]) => `\${${formatScript(cell)}}`).join(", ");
  return `\`insert into ${quoteName(table.name)} (${names}) values (${marks})\``;
}

function formatTestRow(table: DataTable, row: DataRow): string {
  const lines = listValues(table, row).map(
    ([name, cell]) => `  ${JSON.stringify(name)}: ${formatScript(cell)},`,
  );
  return `{\n${lines.join("\n")}\n}`;
}

function formatScript(cell: Cell): string {
  if (cell === null || typeof cell !== "object") return JSON.stringify(cell);
  return "int" in cell ? `${cell.int}n` : "null";
}
