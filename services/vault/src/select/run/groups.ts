// GROUP BY, and aggregates over all rows.
import { type Accumulator, createAccumulator } from "../language/aggregates.ts";
import { compile, type Getter, holds, type Scope } from "../language/evaluator.ts";
import { SelectError } from "../language/fault.ts";
import type { AggregateName, Expression, Query } from "../language/syntax.ts";
import { toKey, type Value } from "../language/value.ts";
import type { MemoryBudget } from "./memory-budget.ts";
import { compileGroupProjection, type Projection } from "./projection.ts";
import { toCanonical } from "./row-names.ts";

interface Group {
  readonly keys: readonly Value[];
  readonly accumulators: readonly Accumulator[];
}

/** An aggregate of the question. */
interface Aggregate {
  readonly name: AggregateName;
  readonly operand: Getter | undefined;
}

export class Groups {
  readonly #budget: MemoryBudget;
  readonly #isText: boolean;
  readonly #keys: readonly Getter[];
  readonly #aggregates: Aggregate[] = [];
  readonly #byCanonical = new Map<string, number>();
  readonly #groups = new Map<string, Group>();
  /** The group of all rows, if there are no keys. */
  readonly #whole: Group | undefined;
  readonly #having: Getter | undefined;
  /** The record of the current group. */
  readonly project: Projection;
  /** Sort keys of the current group. */
  readonly order: readonly Getter[];
  #current: Group = { keys: [], accumulators: [] };

  /** `scope` is that of rows. */
  constructor(query: Query, scope: Scope, order: readonly Expression[], budget: MemoryBudget) {
    this.#budget = budget;
    this.#isText = scope.isText;
    this.#keys = query.groupBy.map((expression) => compile(expression, scope));
    const known = new Map(
      query.groupBy.map((expression, index) => [toCanonical(query, expression), index]),
    );
    const groupScope: Scope = {
      ...scope,
      bindKnown: (expression) => {
        const index = known.get(toCanonical(query, expression));
        return index === undefined ? undefined : () => this.#current.keys[index];
      },
      bindInteger: () => undefined,
      bindEquals: () => undefined,
      bindColumn: ({ place }) => {
        throw new SelectError(
          "UnsupportedSqlStructure",
          "A column outside of aggregates must be in GROUP BY.",
          place,
        );
      },
      bindAggregate: (aggregate) => {
        const slot = this.#addAggregate(toCanonical(query, aggregate), aggregate, scope);
        return () => this.#current.accumulators[slot]?.result;
      },
    };
    this.project = compileGroupProjection(query, groupScope);
    this.#having = query.having === undefined ? undefined : compile(query.having, groupScope);
    this.order = order.map((expression) => compile(expression, groupScope));
    if (query.groupBy.length > 0) return;
    this.#whole = this.#createGroup([]);
    this.#groups.set("", this.#whole);
  }

  /** Adds the current row to its group. */
  add(): void {
    const { accumulators } = this.#whole ?? this.#findGroup();
    for (const accumulator of accumulators) accumulator.add();
  }

  #findGroup(): Group {
    const values = this.#keys.map((getter) => getter());
    let key = "";
    // NULL and MISSING are one group.
    for (const value of values) key += toKey(value ?? null);
    const known = this.#groups.get(key);
    if (known !== undefined) return known;
    this.#budget.take(2 * key.length + 60 * this.#aggregates.length);
    const group = this.#createGroup(values);
    this.#groups.set(key, group);
    return group;
  }

  /** Makes one group after another the current one, as far as HAVING allows. */
  *read(): Generator<undefined, void, undefined> {
    for (const group of this.#groups.values()) {
      this.#current = group;
      if (this.#having === undefined || holds(this.#having())) yield;
    }
  }

  #addAggregate(
    canonical: string,
    { name, operand }: Extract<Expression, { kind: "aggregate" }>,
    scope: Scope,
  ): number {
    const known = this.#byCanonical.get(canonical);
    if (known !== undefined) return known;
    const slot = this.#aggregates.length;
    const getter = operand === undefined ? undefined : compile(operand, scope);
    this.#aggregates.push({ name, operand: getter });
    this.#byCanonical.set(canonical, slot);
    return slot;
  }

  #createGroup(keys: readonly Value[]): Group {
    const accumulators = this.#aggregates.map(({ name, operand }) =>
      createAccumulator(name, operand, this.#isText),
    );
    return { keys, accumulators };
  }
}
