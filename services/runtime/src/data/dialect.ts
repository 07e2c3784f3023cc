// The differences between SQLite and PostgreSQL in statements about tables whose names are not known before.

/** A kind of database. */
export type SqlDialect = "sqlite" | "postgres";

/** Quotes the name of a table or column. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** The mark of the parameter at a position from 1. */
export function markParameter(dialect: SqlDialect, position: number): string {
  return dialect === "postgres" ? `$${position}` : "?";
}

/** An equality in which null equals null. */
export function nameSame(dialect: SqlDialect): string {
  return dialect === "postgres" ? "is not distinct from" : "is";
}

/** Types of PostgreSQL that have no equality: their texts are compared. */
const WITHOUT_EQUALITY: ReadonlySet<string> = new Set([
  "json",
  "xml",
  "point",
  "line",
  "lseg",
  "box",
  "path",
  "polygon",
  "circle",
]);

/** A column as an operand of an equality. */
export function compareColumn(
  dialect: SqlDialect,
  { name, type }: { name: string; type: string },
): string {
  const isText = dialect === "postgres" && WITHOUT_EQUALITY.has(type);
  return isText ? `${quoteName(name)}::text` : quoteName(name);
}
