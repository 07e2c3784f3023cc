// Rows as CSV (RFC 4180), JSON and SQL.
import type { DataTable } from "./table.ts";
import type { Cell } from "./cells.ts";
import { quoteName, type SqlDialect } from "./dialect.ts";

/** Formats of an export. */
export const EXPORT_FORMATS = ["csv", "json", "sql"] as const;

/** Writes the rows of a table. */
export interface ExportWriter {
  readonly head: string;
  /** Text of a row; its values are those of all columns of the table. */
  formatRow(values: readonly Cell[]): string;
  end(): string;
}

/** Characters with which spreadsheets begin a formula. */
const FORMULA = /^[=+\-@\t\r]/;

/** Creates the writer of a format; hidden columns are left out, and generated ones of SQL. */
export function formatExport(
  format: (typeof EXPORT_FORMATS)[number],
  table: DataTable,
  dialect: SqlDialect,
): ExportWriter {
  const kept = table.columns
    .map(({ name, hidden, generated }, index) => ({ name, hidden, generated, index }))
    .filter(({ hidden, generated }) => !hidden && !(format === "sql" && generated));
  const pick = (values: readonly Cell[]): Cell[] => kept.map(({ index }) => values[index]!);
  const names = kept.map(({ name }) => name);
  switch (format) {
    case "csv":
      return {
        head: `${names.map(formatField).join(",")}\r\n`,
        formatRow: (values) => `${pick(values).map(formatCsv).join(",")}\r\n`,
        end: () => "",
      };
    case "json": {
      let isFirst = true;
      return {
        head: "[",
        formatRow: (values) => {
          const pairs = pick(values).map((cell, index) => [names[index]!, toJson(cell)]);
          const separator = isFirst ? "\n" : ",\n";
          isFirst = false;
          return `${separator}${JSON.stringify(Object.fromEntries(pairs))}`;
        },
        end: () => "\n]\n",
      };
    }
    case "sql": {
      const into = `insert into ${quoteName(table.name)} (${names.map(quoteName).join(", ")}) values`;
      return {
        head: "",
        formatRow: (values) =>
          `${into} (${pick(values)
            .map((cell) => formatSql(cell, dialect))
            .join(", ")});\n`,
        end: () => "",
      };
    }
    default:
      return format satisfies never;
  }
}

/** A literal of a value. */
function formatSql(cell: Cell, dialect: SqlDialect): string {
  if (cell === null) return "null";
  if (typeof cell === "number") return String(cell);
  if (typeof cell === "string") return `'${cell.replaceAll("'", "''")}'`;
  if ("int" in cell) return cell.int;
  if ("text" in cell) return `'${cell.text.replaceAll("'", "''")}'`;
  if ("hidden" in cell) return "null";
  const hex = Buffer.from(cell.blob, "base64").toString("hex");
  return dialect === "sqlite" ? `x'${hex}'` : `'\\x${hex}'`;
}

function formatCsv(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell === "number") return String(cell);
  if (typeof cell === "string") return formatField(cell);
  if ("int" in cell) return cell.int;
  if ("text" in cell) return formatField(cell.text);
  return "blob" in cell ? cell.blob : "";
}

// An empty text is quoted, and null is not.
function formatField(text: string): string {
  const safe = FORMULA.test(text) && !/^-?\d+(?:\.\d+)?$/.test(text) ? `'${text}` : text;
  return safe === "" || /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

// Integers that a number cannot hold, and bytes, are texts.
function toJson(cell: Cell): unknown {
  if (cell === null || typeof cell !== "object") return cell;
  if ("int" in cell) return cell.int;
  if ("text" in cell) return cell.text;
  return "blob" in cell ? cell.blob : null;
}
