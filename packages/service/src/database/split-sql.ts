// Splits the text of a migration into statements.
import type { DatabaseKind } from "@platform/kernel/db";

const DOLLAR_TAG = /\$(?:[A-Za-z_]\w*)?\$/y;
const WORD = /[A-Za-z_]\w*/y;
const TRIGGER = /^create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?trigger\b/i;

/**
 * Returns the statements of a text without their semicolons. Semicolons inside strings, quoted names, comments,
 * dollar-quoted text (PostgreSQL) and bodies of triggers (SQLite) do not separate. Throws a SyntaxError with the line of a
 * part that is not closed.
 */
export function splitSql(text: string, kind: DatabaseKind): string[] {
  const statements: string[] = [];
  let start = 0;
  /** Statement text without comments, to recognize triggers and empty statements. */
  let code = "";
  let depth = 0;
  let at = 0;
  const close = (end: number): void => {
    if (code.trim() !== "") statements.push(text.slice(start, end).trim());
    code = "";
    depth = 0;
    start = end + 1;
  };
  while (at < text.length) {
    const quoteEnd = skipQuoted(text, at, kind);
    if (quoteEnd > at) {
      if (!isComment(text, at)) code += "'";
      at = quoteEnd;
      continue;
    }
    if (text[at] === ";" && depth <= 0) {
      close(at);
      at++;
      continue;
    }
    WORD.lastIndex = at;
    const word = WORD.exec(text)?.[0];
    if (word !== undefined && kind === "sqlite") depth += changeDepth(code, word.toLowerCase());
    const next = word ?? text[at]!;
    code += next;
    at += next.length;
  }
  close(text.length);
  return statements;
}

/** Nesting of a trigger's body, which ends with `end` after its statements. */
function changeDepth(code: string, word: string): number {
  if (!TRIGGER.test(code.trimStart())) return 0;
  if (word === "begin" || word === "case") return 1;
  return word === "end" ? -1 : 0;
}

function isComment(text: string, at: number): boolean {
  return text.startsWith("--", at) || text.startsWith("/*", at);
}

/** End of the string, quoted name or comment that starts at `at`; `at` if there is none. */
function skipQuoted(text: string, at: number, kind: DatabaseKind): number {
  switch (text[at]) {
    case "'":
      return skipTo(text, at, "'", kind === "postgres" && isEscapeString(text, at));
    case '"':
    case "`":
      return kind === "postgres" && text[at] === "`" ? at : skipTo(text, at, text[at], false);
    case "[":
      return kind === "sqlite" ? findEnd(text, at, "]", at + 1) : at;
    case "-":
      if (!text.startsWith("--", at)) return at;
      return text.includes("\n", at) ? text.indexOf("\n", at) : text.length;
    case "/":
      return text.startsWith("/*", at) ? skipComment(text, at, kind) : at;
    case "$": {
      if (kind !== "postgres" || /\w/.test(text[at - 1] ?? "")) return at;
      DOLLAR_TAG.lastIndex = at;
      const tag = DOLLAR_TAG.exec(text)?.[0];
      return tag === undefined ? at : findEnd(text, at, tag, at + tag.length);
    }
    default:
      return at;
  }
}

/** A doubled quote is part of the text; so is a quote after a backslash in PostgreSQL's `E'…'`. */
function skipTo(text: string, at: number, quote: string, hasEscapes: boolean): number {
  for (let end = at + 1; end < text.length; end++) {
    if (hasEscapes && text[end] === "\\") end++;
    else if (text[end] === quote && text[end + 1] === quote) end++;
    else if (text[end] === quote) return end + 1;
  }
  throw unclosed(text, at);
}

function isEscapeString(text: string, at: number): boolean {
  return /[eE]/.test(text[at - 1] ?? "") && !/\w/.test(text[at - 2] ?? "");
}

/** PostgreSQL nests comments. */
function skipComment(text: string, at: number, kind: DatabaseKind): number {
  if (kind === "sqlite") return findEnd(text, at, "*/", at + 2);
  let depth = 0;
  for (let end = at; end < text.length; end++) {
    if (text.startsWith("/*", end)) depth++;
    else if (text.startsWith("*/", end) && --depth === 0) return end + 2;
    else continue;
    end++;
  }
  throw unclosed(text, at);
}

function findEnd(text: string, at: number, mark: string, from: number): number {
  const end = text.indexOf(mark, from);
  if (end === -1) throw unclosed(text, at);
  return end + mark.length;
}

function unclosed(text: string, at: number): SyntaxError {
  const line = text.slice(0, at).split("\n").length;
  return new SyntaxError(`line ${line}: ${text.slice(at, at + 2).trim()} is not closed`);
}
