// Parses CASE, CAST and the calls of functions.
import type { Token } from "./lexer.ts";
import type { AggregateName, CastType, Expression, FunctionName } from "./syntax.ts";
import { DATE_PARTS, type DatePart } from "./timestamp.ts";
import type { TokenStream } from "./token-stream.ts";

const AGGREGATES: ReadonlySet<string> = new Set(["COUNT", "SUM", "AVG", "MIN", "MAX"]);

/** Functions with plain arguments, and the numbers of arguments that they accept. */
const FUNCTIONS: Readonly<Record<string, readonly [FunctionName, min: number, max: number]>> = {
  CHAR_LENGTH: ["CHAR_LENGTH", 1, 1],
  CHARACTER_LENGTH: ["CHAR_LENGTH", 1, 1],
  LOWER: ["LOWER", 1, 1],
  UPPER: ["UPPER", 1, 1],
  TO_STRING: ["TO_STRING", 2, 2],
  TO_TIMESTAMP: ["TO_TIMESTAMP", 1, 2],
  UTCNOW: ["UTCNOW", 0, 0],
  NULLIF: ["NULLIF", 2, 2],
};

const LENGTH_MAX = 2_147_483_647;
/** Digits of a decimal. */
const PRECISION_MAX = 38;
const EXTRACTED = [...DATE_PARTS, "timezone_hour", "timezone_minute"] as const;

export class FunctionParser {
  readonly #tokens: TokenStream;
  readonly #parse: () => Expression;

  /** `parse` reads one expression. */
  constructor(tokens: TokenStream, parse: () => Expression) {
    this.#tokens = tokens;
    this.#parse = parse;
  }

  /** Reads a call that begins with this word, which is the next token; `undefined` if it is no call. */
  read(word: Token): Expression | undefined {
    const tokens = this.#tokens;
    if (word.upper === "CASE") return tokens.nest(() => this.#readCase());
    const isCall = tokens.second.kind === "symbol" && tokens.second.text === "(";
    if (!isCall) {
      if (word.upper !== "CAST") return undefined;
      tokens.take();
      throw tokens.fault("ParseExpectedLeftParenAfterCast");
    }
    if (tokens.isReserved) return undefined;
    tokens.take();
    tokens.take();
    return this.#readCall(word);
  }

  #readCall(word: Token): Expression {
    const { upper } = word;
    switch (upper) {
      case "CAST":
        return this.#readCast();
      case "COALESCE":
        return { kind: "coalesce", operands: this.#readArguments(word, 1, 10_000) };
      case "SUBSTRING":
        return this.#readSubstring(word);
      case "TRIM":
        return this.#readTrim();
      case "EXTRACT":
        return this.#readExtract();
      case "DATE_ADD":
      case "DATE_DIFF":
        return this.#readDate(upper);
      default:
        break;
    }
    if (AGGREGATES.has(upper)) return this.#readAggregate(upper as AggregateName);
    const known = Object.hasOwn(FUNCTIONS, upper) ? FUNCTIONS[upper] : undefined;
    if (known === undefined) {
      const name = word.text.slice(0, 40);
      throw this.#tokens.faultAt(word, "UnsupportedFunction", `There is no function ${name}.`);
    }
    const [name, min, max] = known;
    return { kind: "call", name, operands: this.#readArguments(word, min, max) };
  }

  #readArguments(word: Token, min: number, max: number): Expression[] {
    const tokens = this.#tokens;
    const operands: Expression[] = [];
    if (!tokens.is(")")) {
      do operands.push(this.#parse());
      while (tokens.accept(","));
    }
    this.#close();
    if (operands.length >= min && operands.length <= max) return operands;
    const expected = min === max ? String(min) : `${min} to ${max}`;
    throw tokens.faultAt(
      word,
      "EvaluatorInvalidArguments",
      `${word.upper} has ${expected} arguments, not ${operands.length}.`,
    );
  }

  #close(): void {
    const tokens = this.#tokens;
    if (tokens.accept(")")) return;
    const isArgument = ["word", "name", "string", "number"].includes(tokens.next.kind);
    throw tokens.fault(
      isArgument ? "ParseExpectedArgumentDelimiter" : "ParseExpectedRightParenBuiltinFunctionCall",
    );
  }

  #readAggregate(name: AggregateName): Expression {
    const tokens = this.#tokens;
    if (tokens.is("*")) {
      if (name !== "COUNT") throw tokens.fault("ParseUnsupportedCallWithStar");
      tokens.take();
      this.#close();
      return { kind: "aggregate", name, operand: undefined };
    }
    if (tokens.is(")")) throw tokens.fault("ParseNonUnaryAgregateFunctionCall");
    if (tokens.is("DISTINCT")) {
      throw tokens.fault("ParseUnsupportedSyntax", "DISTINCT is not supported in aggregates.");
    }
    tokens.accept("ALL");
    const operand = this.#parse();
    if (tokens.is(",")) throw tokens.fault("ParseNonUnaryAgregateFunctionCall");
    this.#close();
    return { kind: "aggregate", name, operand };
  }

  #readCase(): Expression {
    const tokens = this.#tokens;
    tokens.take();
    const subject = tokens.is("WHEN") ? undefined : this.#parse();
    if (!tokens.is("WHEN")) throw tokens.fault("ParseExpectedWhenClause");
    const branches: [Expression, Expression][] = [];
    while (tokens.accept("WHEN")) {
      const condition = this.#parse();
      tokens.require("THEN", "ParseExpectedKeyword");
      branches.push([condition, this.#parse()]);
    }
    const otherwise = tokens.accept("ELSE") ? this.#parse() : undefined;
    tokens.require("END", "ParseExpectedKeyword");
    return { kind: "case", subject, branches, otherwise };
  }

  #readCast(): Expression {
    const tokens = this.#tokens;
    if (tokens.is(")")) throw tokens.fault("ParseCastArity");
    const operand = this.#parse();
    if (tokens.is(",") || tokens.is(")")) throw tokens.fault("ParseCastArity");
    tokens.require("AS", "ParseExpectedKeyword");
    const type = this.#readType();
    this.#close();
    return { kind: "cast", operand, type };
  }

  #readType(): CastType {
    const tokens = this.#tokens;
    const token = tokens.next;
    if (token.kind !== "word") throw tokens.fault("ParseExpectedTypeName");
    tokens.take();
    switch (token.upper) {
      case "BOOL":
      case "BOOLEAN":
        return { name: "bool" };
      case "INT":
      case "INTEGER":
        return { name: "int" };
      case "FLOAT":
        return { name: "float" };
      case "TIMESTAMP":
        return { name: "timestamp" };
      case "STRING": {
        const [length] = this.#readTypeParameters(1, LENGTH_MAX);
        return { name: "string", length };
      }
      case "DECIMAL":
      case "NUMERIC": {
        const [precision, scale] = this.#readTypeParameters(2, PRECISION_MAX);
        if (precision === undefined) return { name: "decimal", scale: undefined };
        if ((scale ?? 0) > precision) throw tokens.faultAt(token, "ParseInvalidTypeParam");
        return { name: "decimal", scale: scale ?? 0 };
      }
      default:
        throw tokens.faultAt(token, "ParseExpectedTypeName", "The type is not supported.");
    }
  }

  #readTypeParameters(countMax: number, valueMax: number): number[] {
    const tokens = this.#tokens;
    if (!tokens.accept("(")) return [];
    const values: number[] = [];
    do {
      const { kind, text } = tokens.next;
      const isValid = kind === "number" && /^\d{1,10}$/.test(text) && Number(text) <= valueMax;
      if (!isValid || values.length === countMax) throw tokens.fault("ParseInvalidTypeParam");
      values.push(Number(tokens.take().text));
    } while (tokens.accept(","));
    tokens.require(")", "ParseInvalidTypeParam");
    return values;
  }

  // With commas, or with FROM and FOR.
  #readSubstring(word: Token): Expression {
    const tokens = this.#tokens;
    const operand = this.#parse();
    if (!tokens.accept("FROM")) {
      tokens.accept(",");
      const others = this.#readArguments(word, 1, 2);
      return { kind: "call", name: "SUBSTRING", operands: [operand, ...others] };
    }
    const operands = [operand, this.#parse()];
    if (tokens.accept("FOR")) operands.push(this.#parse());
    this.#close();
    return { kind: "call", name: "SUBSTRING", operands };
  }

  #readTrim(): Expression {
    const tokens = this.#tokens;
    const side = (["LEADING", "TRAILING", "BOTH"] as const).find((one) => tokens.accept(one));
    let characters: Expression | undefined;
    if (!tokens.is("FROM")) characters = this.#parse();
    if (!tokens.accept("FROM")) {
      if (characters === undefined) throw tokens.fault("ParseExpectedExpression");
      this.#close();
      return { kind: "trim", side: side ?? "BOTH", characters: undefined, operand: characters };
    }
    const operand = this.#parse();
    this.#close();
    return { kind: "trim", side: side ?? "BOTH", characters, operand };
  }

  #readExtract(): Expression {
    const part = this.#readPart(EXTRACTED);
    this.#tokens.require("FROM", "ParseExpectedKeyword");
    const operand = this.#parse();
    this.#close();
    return { kind: "extract", part, operand };
  }

  #readDate(name: "DATE_ADD" | "DATE_DIFF"): Expression {
    const tokens = this.#tokens;
    const part: DatePart = this.#readPart(DATE_PARTS);
    tokens.require(",", "ParseExpectedArgumentDelimiter");
    const left = this.#parse();
    tokens.require(",", "ParseExpectedArgumentDelimiter");
    const right = this.#parse();
    this.#close();
    return { kind: name === "DATE_ADD" ? "date-add" : "date-difference", part, left, right };
  }

  #readPart<Part extends string>(parts: readonly Part[]): Part {
    const { kind, text } = this.#tokens.next;
    const part = kind === "word" ? parts.find((one) => one === text.toLowerCase()) : undefined;
    if (part === undefined) throw this.#tokens.fault("ParseExpectedDatePart");
    this.#tokens.take();
    return part;
  }
}
