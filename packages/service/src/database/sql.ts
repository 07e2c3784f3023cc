// SQL from tagged templates: values become bound parameters, never text.
import type { DatabaseKind } from "@platform/kernel/db";
import { markTemplate } from "../error/template-position.ts";

/** A value that both databases can store. Booleans are 0 and 1 on SQLite, dates ISO 8601 text. */
export type SqlValue = string | number | bigint | boolean | Uint8Array | Date | null;

/** A value inside a template: a value, a list for `in (…)`, or a part of a statement. */
export type SqlArgument = SqlValue | readonly SqlValue[] | SqlPart;

/** A statement, or a part of one, that other templates may contain. */
export class SqlPart {
  readonly strings: readonly string[];
  readonly values: readonly SqlArgument[];

  constructor(strings: readonly string[], values: readonly SqlArgument[]) {
    this.strings = strings;
    this.values = values;
  }
}

/** A statement with placeholders and their values. */
export interface Statement {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

const VALUES_MAX = 32_766;

/**
 * A part of a statement, for statements that depend on conditions.
 *
 * ```ts
 * const filter = tag === null ? sql`` : sql`where tag = ${tag}`;
 * await notes.all`select * from notes ${filter} order by id`;
 * ```
 */
export function sql(strings: TemplateStringsArray, ...values: SqlArgument[]): SqlPart {
  markTemplate(strings);
  return new SqlPart(strings, values);
}

/** Builds the statement of a template. Throws a TypeError for values that cannot be stored. */
export function buildStatement(part: SqlPart, kind: DatabaseKind): Statement {
  const values: SqlValue[] = [];
  const append = ({ strings, values: inner }: SqlPart): string => {
    let text = strings[0]!;
    for (const [index, value] of inner.entries()) {
      text += formatValue(value) + strings[index + 1]!;
    }
    return text;
  };
  const bind = (value: unknown): string => {
    values.push(toStorable(value, values.length + 1));
    if (values.length > VALUES_MAX) {
      throw new TypeError(`SQL: more than ${VALUES_MAX} values in one statement`);
    }
    return kind === "postgres" ? `$${values.length}` : "?";
  };
  const formatValue = (value: SqlArgument): string => {
    if (value instanceof SqlPart) return append(value);
    if (!Array.isArray(value)) return bind(value);
    // No value is `in (null)`.
    return value.length === 0 ? "null" : value.map(bind).join(", ");
  };
  return { text: append(part), values };
}

/** Throws unless the arguments are those of a template: `db.all(text)` would put values into the text. */
export function readTemplate(method: string, strings: unknown, values: SqlArgument[]): SqlPart {
  if (strings instanceof SqlPart && values.length === 0) return strings;
  if (Array.isArray(strings) && "raw" in strings) {
    markTemplate(strings);
    return new SqlPart(strings, values);
  }
  throw new TypeError(
    `${method} is a template tag: write ${method}\`select …\`, without parentheses`,
  );
}

function toStorable(value: unknown, position: number): SqlValue {
  switch (typeof value) {
    case "string":
    case "number":
    case "bigint":
    case "boolean":
      return value;
    default:
  }
  if (value === null || value instanceof Uint8Array) return value;
  if (value instanceof Date) return value.toISOString();
  const isObject = typeof value === "object";
  const type = isObject ? value.constructor?.name || "object" : typeof value;
  const advice = isObject ? "; use JSON.stringify" : value === undefined ? "; use null" : "";
  throw new TypeError(`SQL: value ${position} of type ${type} cannot be stored${advice}`);
}
