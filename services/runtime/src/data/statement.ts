// Statements that people write: their first word, parameters with names, and the text without values for the audit log.
import { PlatformError } from "@platform/kernel/errors";
import type { SqlValue } from "@platform/kernel/sql-child";
import type { SqlDialect } from "./dialect.ts";
import { readTokens } from "./sql-tokens.ts";

const CHANGES: ReadonlySet<string> = new Set(["insert", "update", "delete", "replace", "merge"]);
const SCHEMA: ReadonlySet<string> = new Set([
  "create",
  "alter",
  "drop",
  "truncate",
  "comment",
  "grant",
  "revoke",
  "reindex",
]);
const AUDIT_TEXT_MAX = 2_000;

/** Effect of a statement, by its first word; `other` ones are left to the database. */
export type StatementKind = "read" | "change" | "schema" | "other";

/** Reads the kind of a statement from its first word, behind the named queries of a WITH. */
export function readKind(sql: string, dialect: SqlDialect): StatementKind {
  let depth = 0;
  let isWith = false;
  for (const { kind, text } of readTokens(sql, dialect)) {
    if (kind === "sign" && text === "(") depth += 1;
    else if (kind === "sign" && text === ")") depth -= 1;
    if (kind !== "word" || depth > 0) continue;
    const word = text.toLowerCase();
    if (CHANGES.has(word)) return "change";
    if (word === "select" || word === "values" || word === "table") return "read";
    if (isWith) continue;
    if (SCHEMA.has(word)) return "schema";
    if (word !== "with") return "other";
    isWith = true;
  }
  return "other";
}

/** The names of parameters in the order of their first places: `id` of `:id`. */
export function listParameters(sql: string, dialect: SqlDialect): string[] {
  const names = new Set<string>();
  for (const { kind, text } of readTokens(sql, dialect)) {
    if (kind === "parameter" && /^[:@$][^\d]/.test(text)) names.add(text.slice(1));
  }
  return [...names];
}

/** A statement with its values in the form of its database. */
export interface BoundStatement {
  readonly sql: string;
  readonly parameters: SqlValue[];
}

/** Replaces parameters with names by those of positions. Throws 400 if a value is missing. */
export function bindParameters(
  sql: string,
  values: Readonly<Record<string, SqlValue>>,
  dialect: SqlDialect,
): BoundStatement {
  const names = listParameters(sql, dialect);
  const missing = names.find((name) => !Object.hasOwn(values, name));
  if (missing !== undefined) {
    throw new PlatformError("validation_failed", `The parameter ${missing} has no value.`);
  }
  let text = "";
  for (const token of readTokens(sql, dialect)) {
    const index = token.kind === "parameter" ? names.indexOf(token.text.slice(1)) : -1;
    text += index < 0 ? token.text : markPlace(dialect, index);
  }
  return { sql: text, parameters: names.map((name) => values[name]!) };
}

/** The mark of a parameter with a name; those of SQLite have numbers, as a name may occur often. */
function markPlace(dialect: SqlDialect, index: number): string {
  return `${dialect === "postgres" ? "$" : "?"}${index + 1}`;
}

/** A statement that was refused. */
interface RefusedStatement {
  readonly sql: string;
  readonly dialect: SqlDialect;
  readonly message: string;
  /** Offset in the text that the database got, if it is known. */
  readonly position: number | undefined;
}

const UNKNOWN_NAME = /^no such (?:column|table|function|index): ([^]*)$/;

/**
 * The offset of a fault in the text of a person, whose parameters have names. SQLite names a column, table or function that does
 * not exist, without its place: it is that of the first such name.
 */
export function locateFault({ sql, dialect, message, position }: RefusedStatement): number | null {
  const names = listParameters(sql, dialect);
  const name = UNKNOWN_NAME.exec(message)?.[1];
  // SQLite: `no such column: "x" - should this be …`
  const wanted = name === undefined ? undefined : unquote(name.split(" - ")[0]!.split(".").at(-1)!);
  let own = 0;
  let bound = 0;
  for (const token of readTokens(sql, dialect)) {
    const isName = token.kind === "word" || token.kind === "name";
    if (position === undefined && isName && wanted !== undefined) {
      if (unquote(token.text).toLowerCase() === wanted.toLowerCase()) return own;
    }
    const index = token.kind === "parameter" ? names.indexOf(token.text.slice(1)) : -1;
    const length = index < 0 ? token.text.length : markPlace(dialect, index).length;
    if (position !== undefined && position < bound + length) {
      return index < 0 ? own + position - bound : own;
    }
    own += token.text.length;
    bound += length;
  }
  return position === undefined ? null : own;
}

function unquote(name: string): string {
  const [first = ""] = name;
  return name.length > 1 && /["`[]/.test(first) ? name.slice(1, -1) : name;
}

/** The text of a statement without its literals and comments. */
export function removeLiterals(sql: string, dialect: SqlDialect): string {
  let text = "";
  for (const token of readTokens(sql, dialect)) {
    if (token.kind === "string" || token.kind === "number") text += "?";
    else if (token.kind === "comment" || token.kind === "blank") text += " ";
    else text += token.text;
  }
  return text.replaceAll(/ {2,}/g, " ").trim().slice(0, AUDIT_TEXT_MAX);
}
