// The catalogue of a SQLite file (https://sqlite.org/pragma.html).
import { type AskCatalogue, type Catalogue, type TableOutline, toRecords } from "./table.ts";

const TABLES = `select l.name, l.type, l.wr, l.ncol, s.sql from pragma_table_list l
  left join sqlite_schema s on s.name = l.name
  where l.schema = 'main' and l.name not like 'sqlite\\_%' escape '\\' and l.type <> 'shadow' order by l.name`;
const COLUMNS = `select l.name as tab, c.name, c.type, c."notnull" as required, c.dflt_value as preset,
    c.dflt_value is null as no_preset, c.pk, c.hidden from pragma_table_list l, pragma_table_xinfo(l.name) c
  where l.schema = 'main' and l.name not like 'sqlite\\_%' escape '\\' and l.type <> 'shadow' order by l.name, c.cid`;
const REFERENCES = `select l.name as tab, f.id, f.seq, f."table" as target, f."from" as source, f."to" as destination
  from pragma_table_list l, pragma_foreign_key_list(l.name) f
  where l.schema = 'main' and l.type = 'table' order by l.name, f.id, f.seq`;
const INDEXES = `select l.name as tab, i.name, i."unique" as is_unique, x.name as col, x.seqno
  from pragma_table_list l, pragma_index_list(l.name) i, pragma_index_info(i.name) x
  where l.schema = 'main' and l.type = 'table' and i.partial = 0 order by l.name, i.name, x.seqno`;
const STATISTICS = "select tbl, stat from sqlite_stat1";
/** Hidden columns of virtual tables; 2 and 3 are generated columns. */
const HIDDEN = "1";
const ROW_IDS = ["rowid", "_rowid_", "oid"];

export const SQLITE_CATALOGUE: Catalogue = {
  readTables: async (ask) => {
    const tables = toRecords(await ask(TABLES));
    const columns = Map.groupBy(toRecords(await ask(COLUMNS)), ({ tab }) => tab!);
    const references = Map.groupBy(toRecords(await ask(REFERENCES)), ({ tab }) => tab!);
    const indexes = Map.groupBy(toRecords(await ask(INDEXES)), ({ tab }) => tab!);
    const estimates = await readStatistics(ask);
    return tables.map((table) => {
      const name = table["name"]!;
      return describe(table, {
        columns: columns.get(name) ?? [],
        references: references.get(name) ?? [],
        indexes: indexes.get(name) ?? [],
        estimate: estimates.get(name) ?? null,
      });
    });
  },
};

type Rows = readonly Record<string, string>[];

function describe(
  { name = "", type = "", wr = "" }: Record<string, string>,
  parts: { columns: Rows; references: Rows; indexes: Rows; estimate: number | null },
): TableOutline {
  const shown = parts.columns.filter(({ hidden }) => hidden !== HIDDEN);
  const names = new Set(shown.map((column) => column["name"]!.toLowerCase()));
  const key = shown
    .filter(({ pk }) => pk !== "0")
    .toSorted((one, other) => Number(one["pk"]) - Number(other["pk"]))
    .map((column) => column["name"]!);
  const hasRowId = type !== "view" && wr === "0";
  const rowId = hasRowId ? (ROW_IDS.find((one) => !names.has(one)) ?? null) : null;
  return {
    name,
    kind: type === "view" ? "view" : type === "virtual" ? "virtual" : "table",
    columns: shown.map((column) => ({
      name: column["name"]!,
      type: column["type"]!,
      nullable: column["required"] === "0" && !(key.length === 1 && key[0] === column["name"]),
      default: column["no_preset"] === "1" ? null : column["preset"]!,
      generated: column["hidden"] !== "0",
      hidden: false,
    })),
    key: key.length > 0 ? key : rowId === null ? null : [rowId],
    row_id: key.length > 0 ? null : rowId,
    references: group(parts.references, "id").map((rows) => ({
      columns: rows.map(({ source }) => source!),
      table: rows[0]!["target"]!,
      to: rows.map(({ destination }) => destination!).filter((one) => one !== ""),
    })),
    indexes: group(parts.indexes, "name").map((rows) => ({
      name: rows[0]!["name"]!,
      columns: rows.map(({ col }) => col!),
      unique: rows[0]!["is_unique"] === "1",
    })),
    estimate: parts.estimate,
  };
}

function group(rows: Rows, column: string): Rows[] {
  return [...Map.groupBy(rows, (row) => row[column]).values()];
}

// The first number is that of the rows; there is no such table before ANALYZE.
async function readStatistics(ask: AskCatalogue): Promise<Map<string, number>> {
  const answer = await ask(STATISTICS).catch(() => undefined);
  const rows = answer === undefined ? [] : toRecords(answer);
  return new Map(rows.map(({ tbl, stat }) => [tbl!, Number.parseInt(stat!, 10) || 0]));
}
