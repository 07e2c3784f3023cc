// Help in the text of statements: tables and columns as suggestions, their definitions, and the types of rows.
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { readMigrationFolder } from "@platform/service/host";
import { LineIndex } from "../language/line-index.ts";
import type { Schema, SchemaCache } from "../language/schema.ts";
import { keyOfStatement, type Analysis, type Document } from "./document.ts";
import type { CompletionItem, Hover, Location } from "./protocol.ts";

const FIELD = 5;
const CLASS = 7;
const SUGGESTIONS_MAX = 1_000;
/** An unfinished statement, where the parser has not found one. */
const UNFINISHED = /([A-Za-z_$][\w$]*)\.(?:one|all|run)(?:<[^`]*>)?`([^`]*)$/;
const TABLES = /\b(?:from|join|update|into)\s+["`]?(\w+)["`]?(?:\s+(?:as\s+)?["`]?(\w+)["`]?)?/gi;
const TABLE_FOLLOWS = /\b(?:from|join|update|into|table)\s+\w*$/i;
const NOT_ALIASES =
  /^(?:where|on|set|values|order|group|join|left|inner|cross|limit|returning|select|default|using)$/i;

/** A place in a statement. */
interface StatementPlace {
  /** Text of the statement, and the offset in it. */
  readonly text: string;
  readonly at: number;
  readonly schema: Schema;
  /** Absolute path of the folder of migrations. */
  readonly folder: string;
  readonly rowType: string | undefined;
}

/** A column of a table. */
interface Column {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
}

/** Finds the statement at an offset; undefined outside of statements, in their expressions, and without migrations. */
export function findStatement(
  document: Document,
  offset: number,
  schemas: SchemaCache,
): StatementPlace | undefined {
  const analysis = document.analyze();
  const found = findText(analysis, offset);
  const { migrations } = analysis.databases.find(({ name }) => name === found?.database) ?? {};
  if (found === undefined || migrations === undefined || document.path === undefined) {
    return undefined;
  }
  const { text, at, key } = found;
  if (isInExpression(text.slice(0, at))) return undefined;
  const folder = resolve(dirname(document.path), migrations.folder);
  const opened = schemas.open(folder);
  if ("message" in opened) return undefined;
  const rowType = document.rowTypes.get(key)?.slice(1, -1);
  return { text, at, schema: opened.schema, folder, rowType };
}

function findText(
  { source, statements }: Analysis,
  offset: number,
): { text: string; at: number; database: string; key: string } | undefined {
  const statement = statements.find(
    ({ textStart, textEnd }) => textStart <= offset && offset <= textEnd,
  );
  if (statement !== undefined) {
    const { textStart, textEnd, database } = statement;
    const text = source.slice(textStart, textEnd);
    return { text, at: offset - textStart, database, key: keyOfStatement(statement) };
  }
  const [, database, text] = UNFINISHED.exec(source.slice(0, offset)) ?? [];
  if (database === undefined || text === undefined) return undefined;
  return { text, at: text.length, database, key: "" };
}

function isInExpression(before: string): boolean {
  let depth = 0;
  for (let at = 0; at < before.length; at++) {
    if (before[at] === "\\") at++;
    else if (before.startsWith("${", at) || (depth > 0 && before[at] === "{")) depth++;
    else if (depth > 0 && before[at] === "}") depth--;
  }
  return depth > 0;
}

/** Tables, or the columns of the statement's tables. */
export function completeStatement({ text, at, schema }: StatementPlace): CompletionItem[] {
  const before = text.slice(0, at);
  const tables = listTables(schema);
  if (TABLE_FOLLOWS.test(before)) return tables.map(createTableItem);
  const names = readTables(text, tables);
  const [, qualifier] = /(\w+)\.\w*$/.exec(before) ?? [];
  if (qualifier !== undefined) {
    return listColumns(schema, [names.get(qualifier) ?? qualifier]).map(createColumnItem);
  }
  const used = names.size === 0 ? tables : [...new Set(names.values())];
  const columns = listColumns(schema, used).map(createColumnItem);
  return [...columns, ...tables.map(createTableItem)].slice(0, SUGGESTIONS_MAX);
}

function createTableItem(label: string): CompletionItem {
  return { label, kind: CLASS, detail: "table", sortText: "1" };
}

function createColumnItem(column: Column): CompletionItem {
  return { label: column.name, kind: FIELD, detail: describeColumn(column), sortText: "0" };
}

function describeColumn({ table, name, type, isRequired }: Column): string {
  return `${table}.${name} ${type}${isRequired ? " not null" : ""}`.trimEnd();
}

function listTables({ database }: Schema): string[] {
  return database
    .prepare("select name from sqlite_master where type in ('table', 'view') order by name")
    .all()
    .map(({ name }) => String(name))
    .filter((name) => !name.startsWith("sqlite_"));
}

function listColumns({ database }: Schema, tables: readonly string[]): Column[] {
  const list = database.prepare(
    'select name, type, "notnull" as required, pk from pragma_table_info(?)',
  );
  return tables.flatMap((table) =>
    list.all(table).map(({ name, type, required, pk }) => ({
      table,
      name: String(name),
      type: String(type).toLowerCase(),
      isRequired: Boolean(required) || Number(pk) > 0,
    })),
  );
}

/** The statement's tables by name and alias. */
function readTables(text: string, known: readonly string[]): Map<string, string> {
  const tables = new Map<string, string>();
  for (const [, table = "", alias] of text.matchAll(TABLES)) {
    if (!known.includes(table)) continue;
    tables.set(table, table);
    if (alias !== undefined && !NOT_ALIASES.test(alias)) tables.set(alias, table);
  }
  return tables;
}

/** The table, or the column with its table, that is named at the place. */
function findNamed({ text, at, schema }: StatementPlace): Column | string | undefined {
  const start = at - (/\w*$/.exec(text.slice(0, at))?.[0].length ?? 0);
  const word = /^\w+/.exec(text.slice(start))?.[0];
  if (word === undefined) return undefined;
  const tables = listTables(schema);
  const names = readTables(text, tables);
  const [, qualifier] = /(\w+)\.$/.exec(text.slice(0, start)) ?? [];
  if (qualifier === undefined && tables.includes(word)) return word;
  const searched = qualifier === undefined ? [...names.values()] : [names.get(qualifier) ?? ""];
  return listColumns(schema, [...new Set(searched)]).find(({ name }) => name === word);
}

/** The table or column that is named at the place, otherwise the type of the rows. */
export function describeStatement(place: StatementPlace): Hover | undefined {
  const named = findNamed(place);
  if (typeof named === "string") {
    const { database } = place.schema;
    const found = database.prepare("select sql from sqlite_master where name = ?").get(named);
    return createHover("sql", String(found?.["sql"]));
  }
  if (named !== undefined) return createHover("sql", describeColumn(named));
  return place.rowType === undefined ? undefined : createHover("ts", `rows: ${place.rowType}`);
}

function createHover(language: string, text: string): Hover {
  return { contents: { kind: "markdown", value: `\`\`\`${language}\n${text}\n\`\`\`` } };
}

/** The `create table` of the table, or of the column's table, that is named at the place. */
export function findDefinition(place: StatementPlace): Location | undefined {
  const named = findNamed(place);
  if (named === undefined) return undefined;
  const table = typeof named === "string" ? named : named.table;
  const quoted = `["\`\\[]?${RegExp.escape(table)}["\`\\]]?(?!\\w)`;
  const create = new RegExp(
    `\\bcreate\\s+(?:table|view|virtual\\s+table)\\s+(?:if\\s+not\\s+exists\\s+)?${quoted}`,
    "i",
  );
  for (const [name, text] of Object.entries(readMigrationFolder(place.folder))) {
    const found = name.endsWith(".postgres.sql") ? null : create.exec(text);
    if (found === null) continue;
    const end = found.index + found[0].length;
    const lines = new LineIndex(text);
    const start = end - found[0].length + found[0].lastIndexOf(table);
    const range = { start: lines.toPosition(start), end: lines.toPosition(start + table.length) };
    return { uri: pathToFileURL(join(place.folder, name)).href, range };
  }
  return undefined;
}
