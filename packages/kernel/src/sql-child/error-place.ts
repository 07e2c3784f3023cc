// The place of an error of SQLite's parser. Node does not report it, and the message has the token only, which may occur often.
import { constants, DatabaseSync } from "node:sqlite";

/** Places of a token that are tried. */
const PLACES_MAX = 200;
const TOKEN = /^near "([^]*)": syntax error$|^unrecognized token: "([^]*)"$/;

/**
 * The offset of the token that a message of SQLite names, in UTF-16 units; undefined for other errors. The parser reads from
 * left to right: the statement up to that token, and no shorter one that ends with it, fails with the same message.
 */
export function locateSyntaxError(sql: string, message: string): number | undefined {
  if (message === "incomplete input") return sql.trimEnd().length;
  const [, near, unrecognized] = TOKEN.exec(message) ?? [];
  const token = near ?? unrecognized ?? "";
  if (token === "") return undefined;
  const database = new DatabaseSync(":memory:", { enableDoubleQuotedStringLiterals: false });
  try {
    database.setAuthorizer(() => constants.SQLITE_DENY);
    let at = sql.indexOf(token);
    for (let tried = 0; at !== -1 && tried < PLACES_MAX; tried += 1) {
      if (readError(database, sql.slice(0, at + token.length)) === message) return at;
      at = sql.indexOf(token, at + 1);
    }
    return undefined;
  } finally {
    database.close();
  }
}

function readError(database: DatabaseSync, sql: string): string | undefined {
  try {
    database.prepare(sql);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : undefined;
  }
}
