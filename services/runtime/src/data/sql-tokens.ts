// Tokens of a statement, as far as its parameters, literals and first word need them.
import type { SqlDialect } from "./dialect.ts";

/** A token; `text` is its source. */
export interface SqlToken {
  readonly kind: "blank" | "comment" | "string" | "name" | "word" | "number" | "parameter" | "sign";
  readonly text: string;
}

const BLANK = /[\s\uFEFF]+/y;
const WORD = /[\p{L}_][\p{L}\p{N}_$]*/uy;
const NUMBER = /(?:0x[0-9a-f]+|(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)/iy;
const DOLLAR_TAG = /\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$/uy;
const NAMED = /[:@$][\p{L}_][\p{L}\p{N}_]*/uy;
const NUMBERED = /(?:\?\d*|\$\d+)/y;

/** Splits a text; the tokens in a row are the text. Quotes that are not closed end with the text. */
export function* readTokens(text: string, dialect: SqlDialect): Generator<SqlToken> {
  let at = 0;
  while (at < text.length) {
    const token = readToken(text, at, dialect);
    yield token;
    at += token.text.length;
  }
}

function readToken(text: string, at: number, dialect: SqlDialect): SqlToken {
  const first = text[at]!;
  if (text.startsWith("--", at)) {
    const end = text.indexOf("\n", at);
    return cut(text, "comment", at, end === -1 ? text.length : end + 1);
  }
  if (text.startsWith("/*", at)) {
    return cut(text, "comment", at, findCommentEnd(text, at, dialect === "postgres"));
  }
  if (first === "'") return cut(text, "string", at, findQuoteEnd(text, at, "'", false));
  if (first === '"') return cut(text, "name", at, findQuoteEnd(text, at, '"', false));
  if (dialect === "sqlite" && (first === "`" || first === "[")) {
    return cut(text, "name", at, findQuoteEnd(text, at, first === "[" ? "]" : "`", false));
  }
  if (dialect === "postgres" && /[eE]/.test(first) && text[at + 1] === "'") {
    return cut(text, "string", at, findQuoteEnd(text, at + 1, "'", true));
  }
  if (dialect === "postgres" && first === "$") {
    const tag = match(DOLLAR_TAG, text, at);
    if (tag !== undefined) {
      const end = text.indexOf(tag, at + tag.length);
      return cut(text, "string", at, end === -1 ? text.length : end + tag.length);
    }
  }
  // A cast.
  if (text.startsWith("::", at)) return { kind: "sign", text: "::" };
  const found =
    tokenOf("blank", BLANK, text, at) ??
    tokenOf("word", WORD, text, at) ??
    tokenOf("number", NUMBER, text, at) ??
    tokenOf("parameter", NUMBERED, text, at) ??
    tokenOf("parameter", NAMED, text, at);
  return found ?? { kind: "sign", text: String.fromCodePoint(text.codePointAt(at)!) };
}

function tokenOf(
  kind: SqlToken["kind"],
  pattern: RegExp,
  text: string,
  at: number,
): SqlToken | undefined {
  const found = match(pattern, text, at);
  return found === undefined ? undefined : { kind, text: found };
}

function match(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

function cut(text: string, kind: SqlToken["kind"], from: number, to: number): SqlToken {
  return { kind, text: text.slice(from, to) };
}

// The position after a quoted text; a doubled quote, or one behind a backslash, is a part of it.
function findQuoteEnd(text: string, at: number, quote: string, hasEscapes: boolean): number {
  let end = at + 1;
  while (end < text.length) {
    if (hasEscapes && text[end] === "\\") end += 2;
    else if (text[end] !== quote) end += 1;
    else if (text[end + 1] === quote && quote !== "]") end += 2;
    else return end + 1;
  }
  return text.length;
}

function findCommentEnd(text: string, at: number, isNested: boolean): number {
  let depth = 1;
  let end = at + 2;
  while (end < text.length && depth > 0) {
    if (text.startsWith("*/", end)) {
      depth -= 1;
      end += 2;
    } else if (isNested && text.startsWith("/*", end)) {
      depth += 1;
      end += 2;
    } else end += 1;
  }
  return end;
}
