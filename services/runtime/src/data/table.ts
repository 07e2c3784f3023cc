// The shape of a table, and the statements that read it from a database.
import type { SqlAnswer, SqlValue } from "@platform/kernel/sql-child";
import { z } from "zod";

/** A column, as its table declares it. */
const columnSchema = z.object({
  name: z.string(),
  type: z.string().meta({ description: "as declared; empty if it has none" }),
  nullable: z.boolean(),
  default: z.string().nullable().meta({ description: "expression" }),
  generated: z.boolean(),
  hidden: z.boolean().meta({ description: "its values are not shown" }),
});
const referenceSchema = z.object({
  columns: z.array(z.string()),
  table: z.string(),
  to: z.array(z.string()),
});

/** A table with its columns, keys, references and indexes. */
export const tableSchema = z
  .object({
    name: z.string(),
    kind: z.enum(["table", "view", "virtual"]),
    columns: z.array(columnSchema),
    key: z
      .array(z.string())
      .nullable()
      .meta({ description: "columns that identify a row; null if there are none" }),
    references: z.array(referenceSchema),
    referenced_by: z.array(referenceSchema).meta({ description: "references of other tables" }),
    indexes: z.array(
      z.object({ name: z.string(), columns: z.array(z.string()), unique: z.boolean() }),
    ),
    rows: z.number().nullable().meta({ description: "null if the number is unknown" }),
    rows_estimated: z.boolean(),
    /** Name by which rows without a key of columns are found: `rowid`, `ctid`. */
    row_id: z.string().nullable(),
  })
  .meta({ id: "DataTable" });

/** A table of a database. */
export type DataTable = z.output<typeof tableSchema>;

/** Asks a question about the database. */
export type AskCatalogue = (sql: string, parameters?: readonly SqlValue[]) => Promise<SqlAnswer>;

/** A table before its rows are counted. */
export type TableOutline = Omit<DataTable, "rows" | "rows_estimated" | "referenced_by"> & {
  /** Number of rows by the statistics of the database. */
  readonly estimate: number | null;
};

/** Statements that read the catalogue of one kind of database. */
export interface Catalogue {
  readTables(ask: AskCatalogue): Promise<TableOutline[]>;
}

/** Text of a value of a catalogue; null is the empty text. */
export function toText(value: SqlAnswer["rows"][number][number] | undefined): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? "" : String(value);
}

/** Rows of an answer as objects of texts. */
export function toRecords({ columns, rows }: SqlAnswer): Record<string, string>[] {
  return rows.map((row) =>
    Object.fromEntries(row.map((value, index) => [columns[index]!.name, toText(value)])),
  );
}
