// Parses expressions. From the loosest operator to the tightest ("Operators" in the SQL reference of S3 Select):
// OR · AND · NOT · = · < > <= >= <> != · LIKE · BETWEEN · IN · IS · || · + - · * / % · unary + and -.
import { FunctionParser } from "./function-parser.ts";
import { parseTimestamp } from "./timestamp.ts";
import type { Token } from "./lexer.ts";
import type {
  ArithmeticOperator,
  CompareOperator,
  Expression,
  PathStep,
  SourceStep,
} from "./syntax.ts";
import type { TokenStream } from "./token-stream.ts";
import { type NumberValue, type Scalar, toDouble, toInteger } from "./value.ts";

const INTEGER_MAX = 2n ** 63n - 1n;
const RELATIONS = ["<", "<=", ">", ">=", "<>", "!="];
const INDEX_MAX = 2 ** 31 - 1;
/** Comparisons without parentheses, such as `a < b < c`: each one makes the tree deeper. */
const CHAIN_MAX = 8;

export class ExpressionParser {
  readonly #tokens: TokenStream;
  readonly #functions: FunctionParser;

  constructor(tokens: TokenStream) {
    this.#tokens = tokens;
    this.#functions = new FunctionParser(tokens, () => this.parse());
  }

  /** Parses one expression. Throws a SelectError. */
  parse(): Expression {
    return this.#tokens.nest(() => this.#readOr());
  }

  /** Reads the steps of FROM below the records. */
  readSourcePath(): SourceStep[] {
    const tokens = this.#tokens;
    const steps: SourceStep[] = [];
    for (;;) {
      if (tokens.is(".") && tokens.second.upper === "*") {
        tokens.take();
        tokens.take();
        steps.push({ kind: "members" });
      } else if (tokens.is("[") && tokens.second.upper === "*") {
        tokens.take();
        tokens.take();
        tokens.require("]", "ParseInvalidPathComponent");
        steps.push({ kind: "elements" });
      } else {
        const step = this.#readStep();
        if (step === undefined) return steps;
        steps.push(step);
      }
    }
  }

  #readOr(): Expression {
    return this.#readChain("or", "OR", () => this.#readAnd());
  }

  #readAnd(): Expression {
    return this.#readChain("and", "AND", () => this.#readNot());
  }

  #readChain(
    kind: "or" | "and" | "concat",
    symbol: string,
    readOperand: () => Expression,
  ): Expression {
    const first = readOperand();
    if (!this.#tokens.is(symbol)) return first;
    const operands = [first];
    while (this.#tokens.accept(symbol)) operands.push(readOperand());
    return { kind, operands };
  }

  #readNot(): Expression {
    const tokens = this.#tokens;
    if (!tokens.accept("NOT")) return this.#readEquality();
    return tokens.nest(() => ({ kind: "not", operand: this.#readNot() }));
  }

  // `=` groups from the right, as the reference says.
  #readEquality(): Expression {
    const tokens = this.#tokens;
    const left = this.#readRelation();
    if (!tokens.accept("=")) return left;
    const right = tokens.nest(() => this.#readEquality());
    return { kind: "compare", operator: "=", left, right };
  }

  #readRelation(): Expression {
    const tokens = this.#tokens;
    let left = this.#readPredicate();
    for (let count = 0; RELATIONS.some((one) => tokens.is(one)); count += 1) {
      if (count > CHAIN_MAX) throw tokens.fault("MaxOperatorsExceeded");
      const { text } = tokens.take();
      const operator = (text === "!=" ? "<>" : text) as CompareOperator;
      left = { kind: "compare", operator, left, right: this.#readPredicate() };
    }
    return left;
  }

  // LIKE, BETWEEN, IN and IS follow their first operand.
  #readPredicate(): Expression {
    const tokens = this.#tokens;
    let value = this.#readConcat();
    for (let count = 0; ; count += 1) {
      if (count > CHAIN_MAX) throw tokens.fault("MaxOperatorsExceeded");
      const isNegated = tokens.is("NOT") && ["LIKE", "BETWEEN", "IN"].includes(tokens.second.upper);
      if (isNegated) tokens.take();
      const predicate = this.#readOnePredicate(value);
      if (predicate === undefined) return value;
      value = isNegated ? { kind: "not", operand: predicate } : predicate;
    }
  }

  #readOnePredicate(value: Expression): Expression | undefined {
    const tokens = this.#tokens;
    if (tokens.accept("LIKE")) {
      const pattern = this.#readConcat();
      const escape = tokens.accept("ESCAPE") ? this.#readConcat() : undefined;
      return { kind: "like", value, pattern, escape };
    }
    if (tokens.accept("BETWEEN")) {
      const low = this.#readConcat();
      tokens.require("AND", "ParseExpectedKeyword");
      return { kind: "between", value, low, high: this.#readConcat() };
    }
    if (tokens.accept("IN")) return { kind: "in", value, items: this.#readItems() };
    return tokens.is("IS") ? this.#readIs(value) : undefined;
  }

  #readItems(): Expression[] {
    const tokens = this.#tokens;
    tokens.require("(", "ParseExpectedLeftParenValueConstructor");
    const items: Expression[] = [];
    do items.push(this.parse());
    while (tokens.accept(","));
    tokens.require(")", "ParseExpectedArgumentDelimiter");
    return items;
  }

  #readIs(value: Expression): Expression {
    const tokens = this.#tokens;
    tokens.take();
    const isNegated = tokens.accept("NOT");
    const what = (["NULL", "MISSING", "TRUE", "FALSE"] as const).find((one) => tokens.accept(one));
    if (what === undefined) throw tokens.fault("ParseExpectedTypeName");
    const lower = what.toLowerCase() as Lowercase<typeof what>;
    const test: Expression = { kind: "is", value, what: lower };
    return isNegated ? { kind: "not", operand: test } : test;
  }

  #readConcat(): Expression {
    return this.#readChain("concat", "||", () => this.#readSum());
  }

  #readSum(): Expression {
    return this.#readArithmetic(["+", "-"], () => this.#readProduct());
  }

  #readProduct(): Expression {
    return this.#readArithmetic(["*", "/", "%"], () => this.#readUnary());
  }

  #readArithmetic(
    operators: readonly ArithmeticOperator[],
    readOperand: () => Expression,
  ): Expression {
    const tokens = this.#tokens;
    const first = readOperand();
    const rest: [ArithmeticOperator, Expression][] = [];
    for (;;) {
      const operator = operators.find((one) => tokens.is(one));
      if (operator === undefined) break;
      tokens.take();
      rest.push([operator, readOperand()]);
    }
    return rest.length === 0 ? first : { kind: "arithmetic", first, rest };
  }

  #readUnary(): Expression {
    const tokens = this.#tokens;
    if (tokens.is("-") && tokens.second.kind === "number") {
      const start = tokens.take();
      const value = readNumber(`-${tokens.take().text}`);
      if (value === undefined) throw tokens.faultAt(start, "IntegerOverflow");
      return { kind: "literal", value };
    }
    if (tokens.accept("-")) {
      return tokens.nest(() => ({ kind: "negate", operand: this.#readUnary() }));
    }
    if (tokens.accept("+")) return tokens.nest(() => this.#readUnary());
    return this.#readPrimary();
  }

  #readPrimary(): Expression {
    const tokens = this.#tokens;
    const token = tokens.next;
    switch (token.kind) {
      case "string":
        tokens.take();
        return { kind: "literal", value: token.text };
      case "number":
      case "ion":
        tokens.take();
        return { kind: "literal", value: this.#readLiteral(token) };
      case "symbol":
        return this.#readParenthesis();
      case "name":
        return this.#readColumn();
      case "word":
        return this.#readWord(token);
      default:
        throw tokens.fault("ParseExpectedExpression");
    }
  }

  #readLiteral(token: Token): Scalar {
    const { kind, text } = token;
    const value = kind === "number" ? readNumber(text) : readIon(text);
    if (value !== undefined) return value;
    const code = kind === "number" ? "IntegerOverflow" : "LexerInvalidIONLiteral";
    throw this.#tokens.faultAt(token, code);
  }

  #readParenthesis(): Expression {
    const tokens = this.#tokens;
    if (tokens.is("*")) throw tokens.fault("ParseUnsupportedCallWithStar");
    if (!tokens.is("(")) {
      const code = /^[a-z]|[)\],.;[]/i.test(tokens.next.text)
        ? "ParseUnexpectedToken"
        : "ParseUnexpectedOperator";
      throw tokens.fault(code, `Unexpected ${tokens.describe()}.`);
    }
    tokens.take();
    if (tokens.is("SELECT")) {
      throw tokens.fault("ParseUnsupportedSelect", "Subqueries are not supported.");
    }
    const inner = this.parse();
    if (tokens.is(","))
      throw tokens.fault("ParseUnsupportedSyntax", "Lists are not supported here.");
    tokens.require(")", "ParseUnexpectedToken");
    return inner;
  }

  #readWord(token: Token): Expression {
    const tokens = this.#tokens;
    const { upper } = token;
    if (upper === "NULL" || upper === "MISSING") {
      tokens.take();
      return { kind: "literal", value: upper === "NULL" ? null : undefined };
    }
    if (upper === "TRUE" || upper === "FALSE") {
      tokens.take();
      return { kind: "literal", value: upper === "TRUE" };
    }
    const special = this.#functions.read(token);
    if (special !== undefined) return special;
    if (tokens.isReserved) {
      throw tokens.fault("ParseUnExpectedKeyword", `Unexpected ${tokens.describe()}.`);
    }
    return this.#readColumn();
  }

  #readColumn(): Expression {
    const tokens = this.#tokens;
    const token = tokens.take();
    const place = tokens.locate(token);
    const path: PathStep[] = [toStep(token)];
    for (;;) {
      // `s.*` and `s.a[*]` belong to the SELECT list.
      if (tokens.second.upper === "*" && (tokens.is(".") || tokens.is("["))) break;
      const step = this.#readStep();
      if (step === undefined) break;
      path.push(step);
    }
    return { kind: "column", path, place };
  }

  #readStep(): PathStep | undefined {
    const tokens = this.#tokens;
    if (tokens.accept(".")) {
      const token = tokens.next;
      // Behind a dot, every word is a name.
      if (token.kind !== "word" && token.kind !== "name") {
        throw tokens.fault("ParseInvalidPathComponent");
      }
      return toStep(tokens.take());
    }
    if (!tokens.accept("[")) return undefined;
    const token = tokens.take();
    let step: PathStep;
    if (token.kind === "string") step = { kind: "name", name: token.text, isQuoted: true };
    else if (
      token.kind === "number" &&
      /^\d{1,10}$/.test(token.text) &&
      Number(token.text) <= INDEX_MAX
    ) {
      step = { kind: "index", index: Number(token.text) };
    } else throw tokens.faultAt(token, "ParseInvalidPathComponent");
    tokens.require("]", "ParseInvalidPathComponent");
    return step;
  }
}

function toStep({ kind, text }: Token): PathStep {
  return { kind: "name", name: text, isQuoted: kind === "name" };
}

/** The number of a literal; `undefined` if it is an integer of more than 64 bits. */
function readNumber(text: string): NumberValue | undefined {
  if (!/^-?\d+$/.test(text)) return toDouble(Number(text));
  const value = BigInt(text);
  return value > INTEGER_MAX || value < -INTEGER_MAX - 1n ? undefined : toInteger(value);
}

/** The value of an Ion literal: a timestamp, a number, a string, a boolean or null; `undefined` for others. */
function readIon(text: string): Scalar | undefined {
  const trimmed = text.trim();
  const timestamp = parseTimestamp(trimmed);
  if (timestamp !== undefined) return timestamp;
  if (/^-?(?:0|[1-9]\d*)(?:\.\d*)?(?:[eE][+-]?\d+)?$/.test(trimmed)) return readNumber(trimmed);
  if (trimmed === "null") return null;
  if (trimmed === "true" || trimmed === "false") return trimmed === "true";
  if (!/^"(?:[^"\\]|\\.)*"$/.test(trimmed)) return undefined;
  try {
    return JSON.parse(trimmed) as string;
  } catch {
    return undefined;
  }
}
