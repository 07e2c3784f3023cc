// Answers a plain question from its meaning: a statement on the view of objects, and a ranking by likeness of words.
import type { SqlAnswer } from "@platform/kernel/sql-child";
import { compileFilter, type FilterColumns } from "../filter.ts";
import { compareLexically, embedLexically } from "../../embed/lexical.ts";
import type { Interpretation } from "./interpretation.ts";

/** A statement with its parameters. */
export interface Statement {
  readonly sql: string;
  readonly parameters: readonly (string | number)[];
}

/** An object in an answer. */
interface AskResult {
  readonly key: string;
  readonly size: number;
  readonly last_modified: string;
  readonly content_type: string;
  readonly storage_class: string;
  readonly version_id: string;
  /** Likeness to the text of the question, if it has one: 1 for the same words. */
  readonly score?: number;
}

/** Results, or a number. */
export interface AskAnswer {
  readonly results?: readonly AskResult[];
  readonly answer?: { readonly count: number; readonly bytes: number };
  readonly truncated: boolean;
}

const RESULTS_DEFAULT = 100;
/** Objects with one of the words, of which the most similar ones are results. */
const CANDIDATES_MAX = 500;
const WORDS_MAX = 16;
/** Endings of words differ: "contract" finds "contracts". */
const STEM_CHARACTERS_MIN = 4;
const COLUMNS = "key, size, last_modified, content_type, storage_class, version_id";
const VIEW_COLUMNS: FilterColumns = {
  key: "key",
  size: "size",
  content_type: "content_type",
  last_modified: "last_modified",
  storage_class: "storage_class",
  tags: "tags",
  metadata: "metadata",
  extension: "extension",
};

/** Throws the S3Error of filters that cannot be compiled. */
export function checkFilters({ filters }: Interpretation): void {
  compileFilter(filters, VIEW_COLUMNS);
}

/** Writes the statement of a meaning. Throws the S3Error of its filters. */
export function writeStatement({
  filters,
  order,
  limit,
  aggregate,
  text,
}: Interpretation): Statement {
  const condition = compileFilter(filters, VIEW_COLUMNS);
  const stems = text === undefined ? [] : listStems(text);
  const found = stems.map(() => "(instr(lower(key || ' ' || metadata || ' ' || tags), ?) > 0)");
  const where = [condition.sql, ...(found.length === 0 ? [] : [`(${found.join(" or ")})`])].join(
    " and ",
  );
  if (aggregate !== undefined) {
    const sql = `select count(*), coalesce(sum(size), 0) from objects where ${where}`;
    return { sql, parameters: [...condition.values, ...stems] };
  }
  const by = order === undefined ? "key" : `${order.by} ${order.direction}, key`;
  if (found.length === 0) {
    // One more shows whether there are more.
    const rows = limit ?? RESULTS_DEFAULT + 1;
    const sql = `select ${COLUMNS} from objects where ${where} order by ${by} limit ${rows}`;
    return { sql, parameters: condition.values };
  }
  const sql =
    `select ${COLUMNS}, metadata, tags from objects where ${where} ` +
    `order by ${order === undefined ? `${found.join(" + ")} desc, ` : ""}${by} limit ${CANDIDATES_MAX}`;
  const ranks = order === undefined ? stems : [];
  return { sql, parameters: [...condition.values, ...stems, ...ranks] };
}

/** Makes the answer of the rows of the statement. */
export function readAnswer(
  { aggregate, limit, order, text }: Interpretation,
  rows: SqlAnswer["rows"],
): AskAnswer {
  if (aggregate !== undefined) {
    const [count, bytes] = rows[0] ?? [];
    return { answer: { count: Number(count), bytes: Number(bytes) }, truncated: false };
  }
  const shown = limit ?? RESULTS_DEFAULT;
  const isRanked = text !== undefined && listStems(text).length > 0;
  const results = isRanked
    ? rank(rows, text, order === undefined)
    : rows.map((row) => toResult(row));
  return {
    results: results.slice(0, shown),
    truncated: limit === undefined && results.length > shown,
  };
}

function rank(rows: SqlAnswer["rows"], text: string, isSorted: boolean): AskResult[] {
  const wanted = embedLexically(text);
  const results = rows.map((row): AskResult => {
    const own = [row[0], row[6], row[7]].map(toText).join(" ");
    const score = Math.round(compareLexically(wanted, embedLexically(own)) * 1e4) / 1e4;
    return { ...toResult(row), score };
  });
  return isSorted ? results.toSorted((a, b) => (b.score ?? 0) - (a.score ?? 0)) : results;
}

function toResult(row: SqlAnswer["rows"][number]): AskResult {
  const [key, size, modified, type, storageClass, version] = row;
  return {
    key: toText(key),
    size: Number(size),
    last_modified: toText(modified),
    content_type: toText(type),
    storage_class: toText(storageClass),
    version_id: toText(version),
  };
}

function toText(value: SqlAnswer["rows"][number][number] | undefined): string {
  return typeof value === "string" ? value : "";
}

function listStems(text: string): string[] {
  const words = text.toLowerCase().split(/[^\p{L}\p{N}]+/u);
  const stems = words
    .filter((word) => word !== "")
    .map((word) => word.slice(0, Math.max(STEM_CHARACTERS_MIN, word.length - 2)));
  return [...new Set(stems)].slice(0, WORDS_MAX);
}
