// Answers of SQL on metadata as text: JSON, one JSON object per line, or CSV.
import type { SqlAnswer } from "@platform/kernel/sql-child";

type Value = SqlAnswer["rows"][number][number];

/** The form of an answer. */
export type AnswerForm = "json" | "ndjson" | "csv";

/** The media type of each form. */
export const ANSWER_TYPES: Readonly<Record<AnswerForm, string>> = {
  json: "application/json",
  ndjson: "application/x-ndjson",
  csv: "text/csv; charset=utf-8",
};

/** Formats an answer in pieces of about 64 KiB. Integers are exact, blobs are base64. */
export function* formatAnswer(
  answer: SqlAnswer,
  form: AnswerForm,
): Generator<Buffer, void, undefined> {
  let text = "";
  for (const part of FORMATS[form](answer)) {
    text += part;
    if (text.length < PIECE_CHARACTERS) continue;
    yield Buffer.from(text);
    text = "";
  }
  if (text !== "") yield Buffer.from(text);
}

const PIECE_CHARACTERS = 65_536;
const FORMATS: Readonly<
  Record<AnswerForm, (answer: SqlAnswer) => Generator<string, void, undefined>>
> = {
  json: formatJson,
  ndjson: formatLines,
  csv: formatCsv,
};

function* formatJson({
  columns,
  rows,
  isTruncated,
  elapsedMs,
}: SqlAnswer): Generator<string, void, undefined> {
  yield `{"columns":${JSON.stringify(columns)},"rows":[`;
  for (const [index, row] of rows.entries()) {
    yield `${index === 0 ? "" : ","}[${row.map(formatValue).join(",")}]`;
  }
  yield `],"truncated":${isTruncated},"elapsed_ms":${Math.ceil(elapsedMs)}}`;
}

function* formatLines({ columns, rows }: SqlAnswer): Generator<string, void, undefined> {
  const names = nameMembers(columns).map((name) => JSON.stringify(name));
  for (const row of rows) {
    yield `{${row.map((value, index) => `${names[index]}:${formatValue(value)}`).join(",")}}\n`;
  }
}

// RFC 4180: lines end with CR LF.
function* formatCsv({ columns, rows }: SqlAnswer): Generator<string, void, undefined> {
  yield `${columns.map(({ name }) => quoteField(name)).join(",")}\r\n`;
  for (const row of rows) yield `${row.map(formatField).join(",")}\r\n`;
}

function formatValue(value: Value): string {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Uint8Array) return JSON.stringify(Buffer.from(value).toString("base64"));
  // JSON has no infinity.
  return JSON.stringify(value);
}

function formatField(value: Value): string {
  if (value === null) return "";
  if (typeof value === "string") return quoteField(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  return formatValue(value);
}

function quoteField(text: string): string {
  return /[",\r\n]/.test(text) || text === "" ? `"${text.replaceAll('"', '""')}"` : text;
}

// Members of an object have different names.
function nameMembers(columns: SqlAnswer["columns"]): string[] {
  const names = new Set<string>();
  for (const { name } of columns) {
    let unique = name;
    for (let count = 2; names.has(unique); count += 1) unique = `${name}_${count}`;
    names.add(unique);
  }
  return [...names];
}
