// Runs a question over the rows of a reader.
//
//   row ─► WHERE ─► groups ─► HAVING ─► SELECT list ─► DISTINCT ─► ORDER BY ─► OFFSET, LIMIT ─► writer
import type { RowReader } from "../input/row-reader.ts";
import { compile, type Getter, holds, type Scope } from "../language/evaluator.ts";
import { SelectError } from "../language/fault.ts";
import type { Expression, Query } from "../language/syntax.ts";
import { parseNumber } from "../language/cast.ts";
import { JsonText, toKey, type Value } from "../language/value.ts";
import type { RecordWriter } from "../output/record-writer.ts";
import { Groups } from "./groups.ts";
import { MemoryBudget } from "./memory-budget.ts";
import { compileProjection, type Projection, type ResultRow } from "./projection.ts";
import { stripRowName } from "./row-names.ts";
import { Sorter } from "./sorter.ts";

/** Options of a run. */
export interface QueryRunOptions {
  readonly query: Query;
  readonly reader: RowReader;
  readonly writer: RecordWriter;
  /** Ms since 1970. */
  readonly nowMs: number;
}

export class QueryRun {
  readonly #query: Query;
  readonly #reader: RowReader;
  readonly #writer: RecordWriter;
  readonly #budget = new MemoryBudget();
  readonly #where: Getter | undefined;
  readonly #groups: Groups | undefined;
  readonly #project: Projection;
  readonly #order: readonly Getter[];
  readonly #sorter: Sorter | undefined;
  readonly #distinct: Set<string> | undefined;
  readonly #copiesObjects: boolean;
  /** Records of the result before OFFSET. */
  #found = 0;

  /** The reader must be ready. Throws a SelectError if the question does not fit the data. */
  constructor({ query, reader, writer, nowMs }: QueryRunOptions) {
    this.#query = query;
    this.#reader = reader;
    this.#writer = writer;
    const scope = createScope(query, reader, nowMs);
    const order = query.orderBy.map(({ expression }) => resolveOutput(query, expression));
    this.#where = query.where === undefined ? undefined : compile(query.where, scope);
    if (query.isGrouped) {
      this.#groups = new Groups(query, scope, order, this.#budget);
      this.#project = this.#groups.project;
      this.#order = this.#groups.order;
    } else {
      this.#project = compileProjection(query, reader, scope);
      this.#order = order.map((expression) => compile(expression, scope));
    }
    const countMax = query.limit === undefined ? Infinity : query.limit + query.offset;
    if (order.length > 0) this.#sorter = new Sorter(query.orderBy, countMax, this.#budget);
    if (query.isDistinct) this.#distinct = new Set();
    const isRow = query.items.length === 1 && query.items[0]!.kind === "row";
    const isPlain = !query.isGrouped && order.length === 0 && !query.isDistinct;
    this.#copiesObjects = isRow && isPlain && writer.acceptsJson;
  }

  /** True if no further row can change the result. */
  get isDone(): boolean {
    const { limit, offset } = this.#query;
    if (limit === undefined) return false;
    if (limit === 0) return true;
    const isStreamed = this.#sorter === undefined && this.#groups === undefined;
    return isStreamed && this.#found >= limit + offset;
  }

  /** Adds the current row of the reader. */
  addRow(): void {
    if (this.#where !== undefined && !holds(this.#where())) return;
    if (this.#groups !== undefined) this.#groups.add();
    else if (this.#copiesObjects) this.#copyObject();
    else this.#addResult();
  }

  /** Writes the records that depend on all rows; each step writes one. */
  *finish(): Generator<undefined, void, undefined> {
    if (this.#groups !== undefined) {
      for (const _ of this.#groups.read()) {
        if (this.isDone || this.#isFull) return;
        this.#addResult();
        yield;
      }
    }
    if (this.#sorter === undefined) return;
    for (const row of this.#sorter.read()) {
      if (this.#isFull) return;
      this.#write(row);
      yield;
    }
  }

  get #isFull(): boolean {
    const { limit, offset } = this.#query;
    return limit !== undefined && this.#found >= limit + offset;
  }

  #copyObject(): void {
    const text = this.#reader.readObjectText();
    if (text === undefined) {
      this.#addResult();
      return;
    }
    this.#found += 1;
    if (this.#found > this.#query.offset) this.#writer.writeJson(text);
  }

  #addResult(): void {
    const row = this.#project();
    if (this.#distinct !== undefined) {
      const key = toRowKey(row);
      if (this.#distinct.has(key)) return;
      this.#budget.take(key.length);
      this.#distinct.add(key);
    }
    if (this.#sorter === undefined) this.#write(row);
    else
      this.#sorter.add(
        row,
        this.#order.map((getter) => getter()),
      );
  }

  #write({ names, cells }: ResultRow): void {
    this.#found += 1;
    if (this.#found > this.#query.offset) this.#writer.write(names, cells);
  }
}

function createScope(query: Query, reader: RowReader, nowMs: number): Scope {
  return {
    bindColumn: (column) => reader.bindValue(stripRowName(query, column.path), column),
    bindInteger: (column) => reader.bindInteger?.(stripRowName(query, column.path), column),
    bindEquals: (column, text) =>
      reader.bindEquals?.(stripRowName(query, column.path), column, text),
    bindAggregate: () => {
      throw new SelectError("UnsupportedSqlOperation", "Aggregates cannot be nested.");
    },
    bindKnown: () => undefined,
    isText: reader.isText,
    nowMs,
  };
}

// ORDER BY may name an item of the SELECT list by its alias or its number.
function resolveOutput({ items }: Query, expression: Expression): Expression {
  if (expression.kind === "literal" && typeof expression.value === "number") {
    const item = items[expression.value - 1];
    if (item?.kind === "expression") return item.expression;
    throw new SelectError("InvalidColumnIndex", "ORDER BY names no item of the SELECT list.");
  }
  const [step, ...rest] = expression.kind === "column" ? expression.path : [];
  if (step?.kind !== "name" || rest.length > 0) return expression;
  for (const item of items) {
    if (item.kind === "expression" && item.name === step.name) return item.expression;
  }
  return expression;
}

function toRowKey({ names, cells }: ResultRow): string {
  let key = "";
  for (const [index, cell] of cells.entries()) key += `${names[index]}=${toKey(parseCell(cell))}`;
  return key;
}

// `1` and `1.0` are equal, whatever their text is.
function parseCell(cell: Value): Value {
  if (!(cell instanceof JsonText) || /^[[{]/.test(cell.text)) return cell;
  if (/^[-\d]/.test(cell.text)) return parseNumber(cell.text);
  return JSON.parse(cell.text) as string | boolean | null;
}
