// Splits a SQL expression into tokens.
import type { SelectErrorCode } from "../../model/select-errors.ts";
import { type Locator, SelectError } from "./fault.ts";

/** Limit of S3. */
const EXPRESSION_BYTES_MAX = 256 * 1024;

/** The kind of a token: `word` is a keyword or a name without quotes, `ion` a literal in backticks. */
type TokenKind = "word" | "name" | "string" | "number" | "ion" | "symbol" | "end";

export interface Token {
  readonly kind: TokenKind;
  /** Decoded: without quotes. */
  readonly text: string;
  /** In upper case, for words; the text of other tokens. */
  readonly upper: string;
  readonly start: number;
}

const WORD_START = /[\p{L}_$]/u;
const WORD = /[\p{L}\p{M}\p{N}_$]+/uy;
const NUMBER = /(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y;
const SPACE = /[ \t\r\n\f\v\u00a0\ufeff]+/y;
const SYMBOLS = ["<>", "!=", "<=", ">=", "||", ...Array.from("=<>+-*/%(),.[];")];
const OPERATORS = new Set("!|&^~:?@#");

/** Splits an expression; the last token is `end`. Throws a SelectError with its place. */
export function readTokens(text: string, places: Locator): Token[] {
  if (Buffer.byteLength(text) > EXPRESSION_BYTES_MAX) throw new SelectError("ExpressionTooLong");
  return new Lexer(text, places).read();
}

class Lexer {
  readonly #text: string;
  readonly #places: Locator;
  #at = 0;

  constructor(text: string, places: Locator) {
    this.#text = text;
    this.#places = places;
  }

  read(): Token[] {
    const tokens: Token[] = [];
    for (;;) {
      this.#skipSpace();
      if (this.#at >= this.#text.length) break;
      tokens.push(this.#next());
    }
    tokens.push({ kind: "end", text: "", upper: "", start: this.#text.length });
    return tokens;
  }

  #next(): Token {
    const start = this.#at;
    const char = this.#text[start]!;
    if (char === "'") return this.#quoted("string", char);
    if (char === '"') return this.#quoted("name", char);
    if (char === "`") return this.#quoted("ion", char);
    const number = this.#match(NUMBER);
    if (number !== undefined) {
      // `1a` is one malformed literal, not a number and an alias.
      if (this.#match(WORD) !== undefined) throw this.#fault("LexerInvalidLiteral", start);
      return { kind: "number", text: number, upper: number, start };
    }
    if (WORD_START.test(String.fromCodePoint(this.#text.codePointAt(start)!))) {
      const word = this.#match(WORD)!;
      return { kind: "word", text: word, upper: word.toUpperCase(), start };
    }
    const symbol = SYMBOLS.find((one) => this.#text.startsWith(one, start));
    if (symbol === undefined) {
      throw this.#fault(OPERATORS.has(char) ? "LexerInvalidOperator" : "LexerInvalidChar", start);
    }
    this.#at += symbol.length;
    return { kind: "symbol", text: symbol, upper: symbol, start };
  }

  // A doubled quote stands for one; backticks cannot be escaped.
  #quoted(kind: "string" | "name" | "ion", quote: string): Token {
    const start = this.#at;
    let text = "";
    let from = start + 1;
    for (;;) {
      const end = this.#text.indexOf(quote, from);
      if (end < 0) throw this.#fault("LexerInvalidLiteral", start, "A quote does not end.");
      text += this.#text.slice(from, end);
      this.#at = end + 1;
      if (kind === "ion" || this.#text[this.#at] !== quote) break;
      text += quote;
      from = end + 2;
    }
    return { kind, text, upper: text, start };
  }

  #skipSpace(): void {
    for (;;) {
      this.#match(SPACE);
      if (this.#text.startsWith("--", this.#at)) {
        const end = this.#text.indexOf("\n", this.#at);
        this.#at = end < 0 ? this.#text.length : end + 1;
      } else if (this.#text.startsWith("/*", this.#at)) {
        const end = this.#text.indexOf("*/", this.#at + 2);
        if (end < 0) throw this.#fault("LexerInvalidLiteral", this.#at, "A comment does not end.");
        this.#at = end + 2;
      } else {
        return;
      }
    }
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match === null) return undefined;
    this.#at = pattern.lastIndex;
    return match[0];
  }

  #fault(code: SelectErrorCode, offset: number, detail?: string): SelectError {
    return new SelectError(code, detail, this.#places.locate(offset));
  }
}
