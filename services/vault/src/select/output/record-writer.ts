// Writes records of results as JSON or CSV.
import { formatText } from "../language/cast.ts";
import { Timestamp } from "../language/timestamp.ts";
import { formatNumber, isNumber, JsonText, type Value } from "../language/value.ts";
import type { OutputFormat } from "../request.ts";

/** Collects the text of records. */
export interface RecordWriter {
  /** UTF-16 units that have been written and not taken. */
  readonly length: number;
  /** True if an object of JSON can be written as it stands. */
  readonly acceptsJson: boolean;
  write(names: readonly string[], cells: readonly Value[]): void;
  /** Writes an object of JSON on one line. */
  writeJson(text: string): void;
  /** Takes the bytes of the records since the last call. */
  take(): Buffer;
}

export function createWriter(output: OutputFormat): RecordWriter {
  return output.format === "JSON" ? new JsonWriter(output.recordDelimiter) : new CsvWriter(output);
}

class JsonWriter implements RecordWriter {
  readonly acceptsJson = true;
  readonly #delimiter: string;
  #text = "";
  #names: readonly string[] = [];
  #prefixes: string[] = [];

  constructor(delimiter: string) {
    this.#delimiter = delimiter;
  }

  get length(): number {
    return this.#text.length;
  }

  // MISSING values have no member.
  write(names: readonly string[], cells: readonly Value[]): void {
    if (names !== this.#names) {
      this.#names = names;
      this.#prefixes = names.map((name) => `${JSON.stringify(name)}:`);
    }
    let text = "{";
    for (let index = 0; index < cells.length; index += 1) {
      const cell = cells[index];
      if (cell === undefined) continue;
      if (text.length > 1) text += ",";
      text += this.#prefixes[index] + formatJson(cell);
    }
    this.#text += `${text}}${this.#delimiter}`;
  }

  writeJson(text: string): void {
    this.#text += text + this.#delimiter;
  }

  take(): Buffer {
    const bytes = Buffer.from(this.#text);
    this.#text = "";
    return bytes;
  }
}

function formatJson(value: NonNullable<Value> | null): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (value instanceof JsonText) return value.text;
  if (value === null) return "null";
  if (typeof value === "boolean") return value ? "true" : "false";
  if (value instanceof Timestamp) return `"${value.toString()}"`;
  // JSON has no word for infinity.
  const text = formatNumber(value);
  return /[IN]/.test(text) ? "null" : text;
}

class CsvWriter implements RecordWriter {
  readonly acceptsJson = false;
  readonly #output: Extract<OutputFormat, { format: "CSV" }>;
  readonly #special: RegExp;
  #text = "";

  constructor(output: Extract<OutputFormat, { format: "CSV" }>) {
    this.#output = output;
    const { fieldDelimiter, recordDelimiter, quoteCharacter } = output;
    const escaped = [fieldDelimiter, recordDelimiter, quoteCharacter, "\n", "\r"]
      .filter((one) => one !== "")
      .map((one) => one.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
    this.#special = new RegExp(escaped.join("|"));
  }

  get length(): number {
    return this.#text.length;
  }

  write(_: readonly string[], cells: readonly Value[]): void {
    const { fieldDelimiter, recordDelimiter } = this.#output;
    let text = "";
    for (let index = 0; index < cells.length; index += 1) {
      if (index > 0) text += fieldDelimiter;
      text += this.#quote(toCsvText(cells[index]));
    }
    this.#text += text + recordDelimiter;
  }

  writeJson(): void {
    throw new Error("CSV has no objects");
  }

  take(): Buffer {
    const bytes = Buffer.from(this.#text);
    this.#text = "";
    return bytes;
  }

  #quote(text: string): string {
    const { quoteCharacter: quote, quoteEscapeCharacter: escape, quotesAlways } = this.#output;
    if (quote === "" || (!quotesAlways && !this.#special.test(text))) return text;
    const inner = escape === quote ? text : text.replaceAll(escape, escape + escape);
    return quote + inner.replaceAll(quote, escape + quote) + quote;
  }
}

function toCsvText(value: Value): string {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  if (value instanceof JsonText) {
    if (value.text.startsWith('"')) return JSON.parse(value.text) as string;
    return value.text === "null" ? "" : value.text;
  }
  return isNumber(value) ? formatNumber(value) : formatText(value);
}
