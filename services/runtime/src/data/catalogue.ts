// The tables of a database with their columns, keys, references and indexes.
import { quoteName, type SqlDialect } from "./dialect.ts";
import { POSTGRES_CATALOGUE } from "./postgres-catalogue.ts";
import { SQLITE_CATALOGUE } from "./sqlite-catalogue.ts";
import type { AskCatalogue, Catalogue, DataTable, TableOutline } from "./table.ts";

/** Tables that are counted exactly have at most so many rows. */
const COUNT_MAX = 1_000;
/** Tables of which rows are counted; others have their estimate. */
const COUNTED_MAX = 500;

const CATALOGUES: Readonly<Record<SqlDialect, Catalogue>> = {
  sqlite: SQLITE_CATALOGUE,
  postgres: POSTGRES_CATALOGUE,
};

/** Reads the tables. With `counts`, rows are counted, as far as that is cheap. */
export async function readTables(
  ask: AskCatalogue,
  dialect: SqlDialect,
  { counts }: { counts: boolean },
): Promise<DataTable[]> {
  const outlines = await CATALOGUES[dialect].readTables(ask);
  const counted = counts ? await countRows(ask, outlines) : new Map<string, number>();
  return outlines.map(({ estimate, ...outline }) => {
    const exact = counted.get(outline.name);
    const isExact = exact !== undefined && exact <= COUNT_MAX;
    return {
      ...outline,
      rows: isExact ? exact : (estimate ?? (exact === undefined ? null : exact)),
      rows_estimated: !isExact,
      referenced_by: outlines.flatMap(({ name, references }) =>
        references
          .filter(({ table }) => table === outline.name)
          .map(({ columns, to }) => ({ columns, table: name, to })),
      ),
    };
  });
}

// Each count stops soon after its bound: a large table is not read. One statement answers for many tables.
async function countRows(
  ask: AskCatalogue,
  outlines: readonly TableOutline[],
): Promise<Map<string, number>> {
  const tables = outlines.filter(({ kind }) => kind === "table").slice(0, COUNTED_MAX);
  if (tables.length === 0) return new Map();
  const parts = tables.map(
    ({ name }) =>
      `(select count(*) from (select 1 from ${quoteName(name)} limit ${COUNT_MAX + 1}) as counted)`,
  );
  const { rows } = await ask(`select ${parts.join(",\n")}`).catch(() => ({ rows: [] }));
  return new Map(
    tables.flatMap(({ name }, index) =>
      rows[0] === undefined ? [] : [[name, Number(rows[0][index])] as const],
    ),
  );
}
