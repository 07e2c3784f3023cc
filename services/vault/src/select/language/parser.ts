// Parses a question: SELECT … FROM S3Object ….
import { ExpressionParser } from "./expression-parser.ts";
import { hasAggregate } from "./expressions.ts";
import type { Expression, OrderItem, Query, SelectItem, SourceStep } from "./syntax.ts";
import { TokenStream } from "./token-stream.ts";

const ITEMS_MAX = 10_000;
/** Name of a row without an alias; in CSV and Parquet, it is that of the first column. */
export const ROW_NAME = "_1";
const JOINS = ["JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "OUTER", ","];
const SETS = ["UNION", "INTERSECT", "EXCEPT"];

/** Parses a question. Throws a SelectError with the place of the fault. */
export function parseQuery(text: string): Query {
  const tokens = new TokenStream(text);
  const expressions = new ExpressionParser(tokens);
  return new QueryParser(tokens, expressions).parse();
}

class QueryParser {
  readonly #tokens: TokenStream;
  readonly #expressions: ExpressionParser;

  constructor(tokens: TokenStream, expressions: ExpressionParser) {
    this.#tokens = tokens;
    this.#expressions = expressions;
  }

  parse(): Query {
    const tokens = this.#tokens;
    tokens.require("SELECT", "ParseUnexpectedToken");
    const isDistinct = tokens.accept("DISTINCT");
    if (!isDistinct) tokens.accept("ALL");
    const items = this.#readItems();
    tokens.require("FROM", "ParseSelectMissingFrom");
    const source = this.#readSource();
    const rowNames = this.#readRowNames(source);
    const where = tokens.accept("WHERE") ? this.#readCondition() : undefined;
    const groupBy = this.#readGroupBy();
    const having = tokens.accept("HAVING") ? this.#expressions.parse() : undefined;
    const orderBy = this.#readOrderBy();
    const limit = tokens.accept("LIMIT") ? this.#readCount() : undefined;
    const offset = tokens.accept("OFFSET") ? this.#readCount() : 0;
    tokens.accept(";");
    if (!tokens.isAtEnd) throw this.#refuseRest();
    const outputs = [
      ...items.flatMap((item) => (item.kind === "row" ? [] : [item.expression])),
      ...orderBy.map(({ expression }) => expression),
    ];
    const isGrouped = groupBy.length > 0 || having !== undefined || outputs.some(hasAggregate);
    return {
      isDistinct,
      items,
      source,
      rowNames,
      where,
      groupBy,
      having,
      orderBy,
      limit,
      offset,
      isGrouped,
    };
  }

  #readItems(): SelectItem[] {
    const tokens = this.#tokens;
    if (tokens.is("FROM") || tokens.isAtEnd) throw tokens.fault("ParseEmptySelect");
    const items: SelectItem[] = [];
    do {
      if (tokens.is("*")) {
        const isAlone = items.length === 0 && tokens.second.upper !== ",";
        if (!isAlone) throw tokens.fault("ParseAsteriskIsNotAloneInSelectList");
        tokens.take();
        items.push({ kind: "row", name: undefined });
      } else {
        items.push(this.#readItem(items.length + 1));
      }
      if (items.length > ITEMS_MAX) throw tokens.fault("MaxOperatorsExceeded");
    } while (tokens.accept(","));
    return items;
  }

  #readItem(position: number): SelectItem {
    const tokens = this.#tokens;
    const start = tokens.next;
    const expression = this.#expressions.parse();
    if (tokens.is(".") && tokens.second.upper === "*") {
      const isName = expression.kind === "column" && expression.path.length === 1;
      if (!isName || (start.kind !== "word" && start.kind !== "name")) {
        throw tokens.fault("ParseInvalidContextForWildcardInSelectList");
      }
      tokens.take();
      tokens.take();
      return { kind: "row", name: expression };
    }
    if (tokens.is("[") && tokens.second.upper === "*") {
      throw tokens.fault("ParseInvalidContextForWildcardInSelectList");
    }
    const hasAs = tokens.accept("AS");
    const alias = tokens.acceptName();
    if (hasAs && alias === undefined) throw tokens.fault("ParseExpectedIdentForAlias");
    const name = alias?.text ?? nameOutput(expression) ?? `_${position}`;
    return { kind: "expression", expression, name };
  }

  #readSource(): SourceStep[] {
    const tokens = this.#tokens;
    if (tokens.is("("))
      throw tokens.fault("UnsupportedSqlStructure", "Subqueries are not supported.");
    const table = tokens.acceptName();
    if (table === undefined) throw tokens.fault("ParseUnexpectedToken");
    if (table.upper.toUpperCase() !== "S3OBJECT") {
      throw tokens.faultAt(table, "InvalidDataSource", "The data source must be S3Object.");
    }
    // The first wildcard stands for the records of the object.
    if (tokens.is("[") && tokens.second.upper === "*") {
      tokens.take();
      tokens.take();
      tokens.require("]", "ParseInvalidPathComponent");
    } else if (tokens.is("[") || tokens.is(".")) {
      throw tokens.fault("InvalidKeyPath", "A path must begin with S3Object[*].");
    }
    return this.#expressions.readSourcePath();
  }

  #readRowNames(source: readonly SourceStep[]): string[] {
    const tokens = this.#tokens;
    const hasAs = tokens.accept("AS");
    const alias = tokens.acceptName();
    if (hasAs && alias === undefined) throw tokens.fault("ParseExpectedIdentForAlias");
    if (JOINS.some((word) => tokens.is(word))) throw tokens.fault("ParseMalformedJoin");
    if (alias !== undefined) return [alias.text];
    const last = source.at(-1);
    if (last === undefined) return ["s3object", ROW_NAME];
    return last.kind === "name" ? [last.name, ROW_NAME] : [ROW_NAME];
  }

  #readCondition(): Expression {
    const start = this.#tokens.next;
    const condition = this.#expressions.parse();
    if (!hasAggregate(condition)) return condition;
    throw this.#tokens.faultAt(
      start,
      "UnsupportedSqlOperation",
      "Aggregates are not allowed in WHERE.",
    );
  }

  #readGroupBy(): Expression[] {
    const tokens = this.#tokens;
    if (!tokens.accept("GROUP")) return [];
    tokens.require("BY", "ParseExpectedKeyword");
    const expressions: Expression[] = [];
    do {
      expressions.push(this.#readCondition());
      if (expressions.length > ITEMS_MAX) throw tokens.fault("MaxOperatorsExceeded");
    } while (tokens.accept(","));
    return expressions;
  }

  #readOrderBy(): OrderItem[] {
    const tokens = this.#tokens;
    if (!tokens.accept("ORDER")) return [];
    tokens.require("BY", "ParseExpectedKeyword");
    const items: OrderItem[] = [];
    do {
      const expression = this.#expressions.parse();
      const isDescending = tokens.accept("DESC");
      if (!isDescending) tokens.accept("ASC");
      let nullsFirst = isDescending;
      if (tokens.accept("NULLS")) {
        nullsFirst = tokens.accept("FIRST");
        if (!nullsFirst) tokens.require("LAST", "ParseExpectedKeyword");
      }
      items.push({ expression, isDescending, nullsFirst });
      if (items.length > ITEMS_MAX) throw tokens.fault("MaxOperatorsExceeded");
    } while (tokens.accept(","));
    return items;
  }

  // Of LIMIT and OFFSET.
  #readCount(): number {
    const tokens = this.#tokens;
    if (tokens.is("-")) throw tokens.fault("EvaluatorNegativeLimit");
    const { kind, text } = tokens.next;
    if (kind !== "number" || !/^\d+$/.test(text)) throw tokens.fault("ParseExpectedNumber");
    const count = Number(text);
    if (!Number.isSafeInteger(count)) throw tokens.fault("IntegerOverflow");
    tokens.take();
    return count;
  }

  #refuseRest() {
    const tokens = this.#tokens;
    if (SETS.some((word) => tokens.is(word))) {
      return tokens.fault("UnsupportedSqlStructure", "Set operations are not supported.");
    }
    const code = tokens.isReserved ? "ParseUnExpectedKeyword" : "ParseUnexpectedToken";
    return tokens.fault(code, `Unexpected ${tokens.describe()}.`);
  }
}

function nameOutput(expression: Expression): string | undefined {
  if (expression.kind !== "column") return undefined;
  const last = expression.path.at(-1);
  return last?.kind === "name" ? last.name : undefined;
}
