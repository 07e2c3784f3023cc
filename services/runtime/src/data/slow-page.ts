// A page of rows that takes longer than a question may: which columns make the database read the whole table.
import { PlatformError } from "@platform/kernel/errors";
import type { PageRequest } from "./row-query.ts";
import type { DataTable } from "./table.ts";

/** Names the columns of a page's sort and filter that no index begins with, if the page failed by the limit of time. */
export function explainSlowPage(error: unknown, table: DataTable, request: PageRequest): unknown {
  if (!(error instanceof PlatformError) || error.fields["limit"] !== "time") return error;
  const columns = listUnindexed(table, request);
  if (columns.length === 0) return error;
  const names = columns.join(" and ");
  return new PlatformError(
    "unprocessable",
    `No index of ${table.name} begins with ${names}: the whole table would be read, which takes too long. ` +
      `Filter by an indexed column as well, or add an index by a migration.`,
    { fields: { ...error.fields, columns }, cause: error },
  );
}

function listUnindexed(table: DataTable, { sort, filter }: PageRequest): string[] {
  const first = new Set([table.key?.[0], ...table.indexes.map(({ columns }) => columns[0])]);
  const asked = [...(sort === undefined ? [] : [sort]), ...filter].map(({ column }) => column);
  return [...new Set(asked)].filter((column) => !first.has(column));
}
