// Filters of searches: the operators of S3 Vectors on keys, sizes, times, tags and metadata, compiled to a condition of SQL.
import { S3Error } from "../model/s3-error.ts";
import { KINDS } from "./kinds.ts";

/** A condition on rows, with the values of its parameters in their order. */
export interface Condition {
  readonly sql: string;
  readonly values: readonly (string | number)[];
}

/** The expressions of the columns in the statement that the condition is for. */
export interface FilterColumns {
  readonly key: string;
  readonly size: string;
  readonly content_type: string;
  /** RFC 3339 in UTC with milliseconds. */
  readonly last_modified: string;
  readonly storage_class: string;
  /** JSON objects. */
  readonly tags: string;
  readonly metadata: string;
  readonly extension: string;
}

const TERMS_MAX = 64;
const DEPTH_MAX = 16;
const LIST_MAX = 100;
const TEXT_CHARACTERS_MAX = 1_024;
const COMPARISONS: Readonly<Record<string, string>> = {
  $eq: "=",
  $ne: "<>",
  $gt: ">",
  $gte: ">=",
  $lt: "<",
  $lte: "<=",
};

/** Compiles a filter, as `{"tags.team": {"$eq": "red"}}` or `{"$and": […]}`. Throws InvalidArgument with the place of the fault. */
export function compileFilter(filter: unknown, columns: FilterColumns): Condition {
  const compiler = new Compiler(columns);
  return { sql: compiler.all(filter, "filter", 0), values: compiler.values };
}

class Compiler {
  readonly values: (string | number)[] = [];
  readonly #columns: FilterColumns;
  #terms = 0;

  constructor(columns: FilterColumns) {
    this.#columns = columns;
  }

  /** Conditions of all members. */
  all(filter: unknown, place: string, depth: number): string {
    if (depth > DEPTH_MAX) throw invalid(place, `is nested deeper than ${DEPTH_MAX}`);
    if (typeof filter !== "object" || filter === null || Array.isArray(filter)) {
      throw invalid(place, "is not an object");
    }
    const parts = Object.entries(filter).map(([name, value]) =>
      this.#member(name, value, `${place}.${name}`, depth),
    );
    return parts.length === 0 ? "1" : `(${parts.join(" and ")})`;
  }

  #member(name: string, value: unknown, place: string, depth: number): string {
    switch (name) {
      case "$and":
      case "$or": {
        const parts = readList(value, place).map((one, index) =>
          this.all(one, `${place}[${index}]`, depth + 1),
        );
        return `(${parts.join(name === "$and" ? " and " : " or ")})`;
      }
      case "$not":
        return `not ${this.all(value, place, depth + 1)}`;
      default:
        return this.#field(name, value, place);
    }
  }

  #field(name: string, value: unknown, place: string): string {
    if (name === "kind") return this.#kind(value, place);
    if (name === "prefix") return this.#prefix(value, place);
    const field = this.#findField(name, place);
    if (typeof value !== "object" || value === null)
      return this.#compare(field, "$eq", value, place);
    if (Array.isArray(value)) throw invalid(place, "is a list; use $in");
    const parts = Object.entries(value).map(([operator, operand]) =>
      this.#compare(field, operator, operand, `${place}.${operator}`),
    );
    if (parts.length === 0) throw invalid(place, "has no operator");
    return `(${parts.join(" and ")})`;
  }

  // The result writes the field, with the parameters of each use.
  #findField(name: string, place: string): () => string {
    const [family = "", ...rest] = name.split(".");
    const member = rest.join(".");
    if ((family === "tags" || family === "metadata") && member !== "") {
      this.#checkText(member, place);
      // Names of metadata are in lower case.
      const key = family === "metadata" ? member.toLowerCase() : member;
      const list = this.#columns[family];
      // Names may contain what a path cannot.
      return () =>
        `(select value from json_each(${list}) where json_each.key = ${this.#mark(key)})`;
    }
    const isColumn = Object.hasOwn(this.#columns, name) && name !== "tags" && name !== "metadata";
    if (!isColumn) throw invalid(place, "is no field");
    return () => this.#columns[name as keyof FilterColumns];
  }

  #compare(field: () => string, operator: string, operand: unknown, place: string): string {
    this.#count(place);
    const comparison = COMPARISONS[operator];
    if (comparison !== undefined) {
      const scalar = this.#scalar(operand, place);
      // A field that is missing differs from each value, and is neither greater nor less.
      return `coalesce(${field()} ${comparison} ${this.#mark(scalar)}, ${operator === "$ne" ? 1 : 0})`;
    }
    switch (operator) {
      case "$in":
      case "$nin": {
        const list = readList(operand, place).map((one) => this.#scalar(one, place));
        const found = `coalesce(${field()} in (${list.map((one) => this.#mark(one)).join(", ")}), 0)`;
        return operator === "$in" ? found : `not ${found}`;
      }
      case "$exists":
        if (typeof operand !== "boolean") throw invalid(place, "is neither true nor false");
        return `${field()} is ${operand ? "not " : ""}null`;
      case "$contains": {
        const text = this.#text(operand, place).toLowerCase();
        return `coalesce(instr(lower(${field()}), ${this.#mark(text)}) > 0, 0)`;
      }
      default:
        throw invalid(place, "is no operator");
    }
  }

  #kind(value: unknown, place: string): string {
    this.#count(place);
    const kind = typeof value === "string" ? KINDS.get(value) : undefined;
    if (kind === undefined) throw invalid(place, `is none of ${[...KINDS.keys()].join(", ")}`);
    const { content_type: type, extension } = this.#columns;
    const types = kind.types.map(
      (prefix) => `instr(lower(coalesce(${type}, '')), ${this.#mark(prefix)}) = 1`,
    );
    const marks = kind.extensions.map((one) => this.#mark(one)).join(", ");
    return `(${[...types, `coalesce(${extension}, '') in (${marks})`].join(" or ")})`;
  }

  #prefix(value: unknown, place: string): string {
    this.#count(place);
    const prefix = this.#text(value, place);
    // As SQLite counts.
    const length = this.#mark(Array.from(prefix).length);
    return `substr(${this.#columns.key}, 1, ${length}) = ${this.#mark(prefix)}`;
  }

  #mark(value: string | number): string {
    this.values.push(value);
    return "?";
  }

  #count(place: string): void {
    this.#terms += 1;
    if (this.#terms > TERMS_MAX) throw invalid(place, `is more than ${TERMS_MAX} terms`);
  }

  #scalar(value: unknown, place: string): string | number {
    if (typeof value === "number" && Number.isFinite(value)) return value;
    if (typeof value === "boolean") return String(value);
    return this.#text(value, place);
  }

  #text(value: unknown, place: string): string {
    if (typeof value !== "string") throw invalid(place, "is neither text nor a number");
    this.#checkText(value, place);
    return value;
  }

  #checkText(value: string, place: string): void {
    if (value.length > TEXT_CHARACTERS_MAX) {
      throw invalid(place, `is longer than ${TEXT_CHARACTERS_MAX} characters`);
    }
  }
}

function readList(value: unknown, place: string): unknown[] {
  if (!Array.isArray(value) || value.length === 0) throw invalid(place, "is not a list with items");
  if (value.length > LIST_MAX) throw invalid(place, `has more than ${LIST_MAX} items`);
  return value as unknown[];
}

function invalid(place: string, reason: string): S3Error {
  return new S3Error("InvalidArgument", `${place.slice(0, 200)} ${reason}.`);
}
