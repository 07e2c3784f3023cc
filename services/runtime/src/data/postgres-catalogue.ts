// The catalogue of PostgreSQL: tables that are visible without the name of their schema
// (https://www.postgresql.org/docs/current/catalogs.html).
import { type AskCatalogue, type Catalogue, type TableOutline, toText } from "./table.ts";

const VISIBLE = `pg_table_is_visible(c.oid) and n.nspname not in ('pg_catalog', 'information_schema')
  and n.nspname not like 'pg\\_%' and c.relkind in ('r', 'p', 'v', 'm', 'f')`;
const FROM = "from pg_class c join pg_namespace n on n.oid = c.relnamespace";
const TABLES = `select c.relname as name, c.relkind as kind, c.reltuples::bigint as estimate ${FROM}
  where ${VISIBLE} order by 1`;
const COLUMNS = `select c.relname as tab, a.attname as name, format_type(a.atttypid, a.atttypmod) as type,
    a.attnotnull::int as required, coalesce(pg_get_expr(d.adbin, d.adrelid), '') as preset,
    (d.adbin is null)::int as no_preset, (a.attgenerated <> '' or a.attidentity = 'a')::int as generated
  ${FROM} join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
  where ${VISIBLE} order by c.relname, a.attnum`;
const INDEXES = `select c.relname as tab, i.relname as name, x.indisunique::int as is_unique, x.indisprimary::int as is_key,
    a.attname as col, k.place
  ${FROM} join pg_index x on x.indrelid = c.oid and x.indpred is null and x.indexprs is null
  join pg_class i on i.oid = x.indexrelid
  cross join lateral unnest(x.indkey::int2[]) with ordinality as k(attnum, place)
  join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum
  where ${VISIBLE} and k.place <= x.indnkeyatts order by c.relname, i.relname, k.place`;
const REFERENCES = `select c.relname as tab, f.conname as id, r.relname as target, a.attname as source, b.attname as destination
  ${FROM} join pg_constraint f on f.conrelid = c.oid and f.contype = 'f' join pg_class r on r.oid = f.confrelid
  cross join lateral unnest(f.conkey, f.confkey) with ordinality as k(own, other, place)
  join pg_attribute a on a.attrelid = c.oid and a.attnum = k.own
  join pg_attribute b on b.attrelid = r.oid and b.attnum = k.other
  where ${VISIBLE} order by c.relname, f.conname, k.place`;

const PARTS = { tables: TABLES, columns: COLUMNS, indexes: INDEXES, references: REFERENCES };
/** One statement: each has a connection of its own, whose process of the server reads the catalogue from its beginning. */
const ALL = Object.entries(PARTS)
  .map(([part, sql]) => `select '${part}' as part, to_json(one)::text as record from (${sql}) one`)
  .join("\nunion all ");

export const POSTGRES_CATALOGUE: Catalogue = {
  readTables: async (ask) => {
    const { tables, columns, indexes, references } = await readParts(ask);
    const [columnsOf, indexesOf, referencesOf] = [columns, indexes, references].map((rows) =>
      Map.groupBy(rows, ({ tab }) => tab!),
    );
    return tables.map((table) => {
      const name = table["name"]!;
      return describe(table, {
        columns: columnsOf!.get(name) ?? [],
        indexes: indexesOf!.get(name) ?? [],
        references: referencesOf!.get(name) ?? [],
      });
    });
  },
};

type Row = Record<string, string>;

async function readParts(ask: AskCatalogue): Promise<Record<keyof typeof PARTS, Row[]>> {
  const parts = { tables: [], columns: [], indexes: [], references: [] } as Record<string, Row[]>;
  for (const [part, record] of (await ask(ALL)).rows) {
    const values = Object.entries(JSON.parse(toText(record)) as Record<string, string | number>);
    parts[toText(part)]!.push(
      Object.fromEntries(values.map(([name, value]) => [name, String(value)])),
    );
  }
  return parts;
}

type Rows = readonly Row[];

function describe(
  { name = "", kind = "", estimate = "" }: Row,
  parts: { columns: Rows; references: Rows; indexes: Rows },
): TableOutline {
  const isView = kind === "v" || kind === "m";
  const key = parts.indexes.filter(({ is_key: isKey }) => isKey === "1").map(({ col }) => col!);
  const rowId = kind === "r" ? "ctid" : null;
  const rows = Number(estimate);
  return {
    name,
    kind: isView ? "view" : kind === "f" ? "virtual" : "table",
    columns: parts.columns.map((column) => ({
      name: column["name"]!,
      type: column["type"]!,
      nullable: column["required"] === "0",
      default: column["no_preset"] === "1" ? null : column["preset"]!,
      generated: column["generated"] === "1",
      hidden: false,
    })),
    key: key.length > 0 ? key : rowId === null ? null : [rowId],
    row_id: key.length > 0 ? null : rowId,
    references: group(parts.references, "id").map((one) => ({
      columns: one.map(({ source }) => source!),
      table: one[0]!["target"]!,
      to: one.map(({ destination }) => destination!),
    })),
    indexes: group(parts.indexes, "name").map((one) => ({
      name: one[0]!["name"]!,
      columns: one.map(({ col }) => col!),
      unique: one[0]!["is_unique"] === "1",
    })),
    // -1: the table was never analyzed.
    estimate: isView || rows < 0 ? null : rows,
  };
}

function group(rows: Rows, column: string): Rows[] {
  return [...Map.groupBy(rows, (row) => row[column]).values()];
}
