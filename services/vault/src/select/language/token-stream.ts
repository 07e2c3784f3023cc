// The tokens of an expression, read one after another.
import type { SelectErrorCode } from "../../model/select-errors.ts";
import { Locator, type Place, SelectError } from "./fault.ts";
import { readTokens, type Token } from "./lexer.ts";

/** Parentheses, functions and prefixes within each other. */
const NESTING_MAX = 200;

/** Words that end an expression or a list, or begin an operator: names of this form need quotes. */
const RESERVED: ReadonlySet<string> = new Set(
  (
    "ALL AND AS ASC BETWEEN BY CASE CROSS DESC DISTINCT ELSE END ESCAPE EXCEPT FROM FULL GROUP HAVING IN INNER " +
    "INTERSECT IS JOIN LEFT LIKE LIMIT MISSING NOT NULL NULLS OFFSET ON OR ORDER OUTER RIGHT SELECT THEN UNION WHEN WHERE"
  ).split(" "),
);

export class TokenStream {
  readonly #places: Locator;
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  /** Throws a SelectError for an expression that is no sequence of tokens. */
  constructor(text: string) {
    this.#places = new Locator(text);
    this.#tokens = readTokens(text, this.#places);
  }

  get next(): Token {
    return this.#tokens[this.#at]!;
  }

  /** The token after the next one. */
  get second(): Token {
    return this.#tokens[Math.min(this.#at + 1, this.#tokens.length - 1)]!;
  }

  get place(): Place {
    return this.locate(this.next);
  }

  /** True if only this token is left. */
  get isAtEnd(): boolean {
    return this.next.kind === "end";
  }

  take(): Token {
    const token = this.next;
    if (token.kind !== "end") this.#at += 1;
    return token;
  }

  /** True if the next token is the symbol or the keyword. */
  is(upper: string): boolean {
    const { kind, upper: found } = this.next;
    return (kind === "symbol" || kind === "word") && found === upper;
  }

  /** Takes the symbol or the keyword if it is next. */
  accept(upper: string): boolean {
    if (!this.is(upper)) return false;
    this.#at += 1;
    return true;
  }

  /** Takes the symbol or the keyword, or throws the error. */
  require(upper: string, code: SelectErrorCode): void {
    if (!this.accept(upper)) throw this.fault(code, `Expected ${upper}, found ${this.describe()}.`);
  }

  /** Takes a name, with or without quotes; `undefined` if another token is next. */
  acceptName(): Token | undefined {
    const { kind, upper } = this.next;
    const isName = kind === "name" || (kind === "word" && !RESERVED.has(upper));
    return isName ? this.take() : undefined;
  }

  /** True if the next token is a reserved word. */
  get isReserved(): boolean {
    return this.next.kind === "word" && RESERVED.has(this.next.upper);
  }

  /** The place of a token. */
  locate(token: Token): Place {
    return this.#places.locate(token.start);
  }

  /** An error at a token. */
  faultAt(token: Token, code: SelectErrorCode, detail?: string): SelectError {
    return new SelectError(code, detail, this.locate(token));
  }

  /** The next token, for messages. */
  describe(): string {
    return this.isAtEnd ? "the end" : JSON.stringify(this.next.text.slice(0, 40));
  }

  /** An error at the next token. */
  fault(code: SelectErrorCode, detail?: string): SelectError {
    return this.faultAt(this.next, code, detail);
  }

  /** Reads a part that is nested in another one. Throws MaxOperatorsExceeded if too many are. */
  nest<Result>(read: () => Result): Result {
    this.#depth += 1;
    if (this.#depth > NESTING_MAX) {
      throw this.fault(
        "MaxOperatorsExceeded",
        `The SQL expression is nested more than ${NESTING_MAX} levels deep.`,
      );
    }
    const result = read();
    this.#depth -= 1;
    return result;
  }
}
