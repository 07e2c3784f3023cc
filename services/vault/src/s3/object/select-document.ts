// The document of SelectObjectContent: XML as in S3, or JSON with the same names.
import { S3Error } from "../../model/s3-error.ts";
import type { ErrorCode } from "../../model/errors.ts";
import type {
  Compression,
  CsvInput,
  InputFormat,
  OutputFormat,
  ScanRange,
  SelectRequest,
} from "../../select/request.ts";
import { parseXml, type XmlElement } from "../wire/xml.ts";

/** Limit of a delimiter. */
const DELIMITER_BYTES_MAX = 4;
const EXPRESSION_BYTES_MAX = 256 * 1024;
const ROOT = "SelectObjectContentRequest";

/** A document: elements without children are texts, in JSON also numbers and booleans. */
type Value = string | number | boolean | Members;
interface Members {
  readonly [name: string]: Value | undefined;
}

/** Reads a document in XML. Throws an S3Error. */
export function readXmlRequest(body: Buffer): SelectRequest {
  if (body.length === 0) throw new S3Error("MissingRequestBodyError");
  // The name of the root in older documents of S3.
  const root = body.subarray(0, 1024).includes("<SelectRequest") ? "SelectRequest" : ROOT;
  return readRequest(toMembers(parseXml(body, root)));
}

/** Reads a document in JSON. Throws an S3Error. */
export function readJsonRequest(body: Buffer): SelectRequest {
  if (body.length === 0) throw new S3Error("MissingRequestBodyError");
  let document: unknown;
  try {
    document = JSON.parse(body.toString());
  } catch {
    throw new S3Error("InvalidRequestParameter", "The body is not a JSON document.");
  }
  if (typeof document !== "object" || document === null || Array.isArray(document)) {
    throw new S3Error("InvalidRequestParameter", "The body is not a JSON object.");
  }
  return readRequest(document as Members);
}

function toMembers(element: XmlElement): Members {
  const members: Record<string, Value> = Object.create(null) as Record<string, Value>;
  for (const child of element.children) {
    if (members[child.name] !== undefined) {
      throw new S3Error("MalformedXML", `${child.name} is repeated in ${element.name}.`);
    }
    members[child.name] = child.children.length > 0 ? toMembers(child) : child.text;
  }
  return members;
}

function readRequest(document: Members): SelectRequest {
  const root = new Part(document, "");
  const expression = root.text("Expression");
  if (expression === undefined) throw missing("Expression");
  if (Buffer.byteLength(expression) > EXPRESSION_BYTES_MAX) throw new S3Error("ExpressionTooLong");
  const type = root.text("ExpressionType") ?? "SQL";
  if (type.toUpperCase() !== "SQL") throw new S3Error("InvalidExpressionType");
  const input = root.part("InputSerialization");
  if (input === undefined) throw missing("InputSerialization");
  const output = root.part("OutputSerialization");
  if (output === undefined) throw missing("OutputSerialization");
  const progress = root.part("RequestProgress");
  const request: SelectRequest = {
    expression,
    compression: readCompression(input),
    input: readInput(input),
    output: readOutput(output),
    scanRange: readScanRange(root.part("ScanRange")),
    reportsProgress: progress?.flag("Enabled") ?? false,
  };
  progress?.end();
  root.end();
  if (request.input.format === "PARQUET" && request.compression !== "NONE") {
    throw new S3Error(
      "InvalidCompressionFormat",
      "Parquet objects are compressed by column, not as a whole.",
    );
  }
  return request;
}

function readCompression(input: Part): Compression {
  const name = input.text("CompressionType")?.toUpperCase() ?? "NONE";
  if (name === "NONE" || name === "GZIP" || name === "BZIP2" || name === "ZSTD") return name;
  throw new S3Error("InvalidCompressionFormat");
}

function readInput(input: Part): InputFormat {
  const csv = input.part("CSV");
  const json = input.part("JSON");
  const parquet = input.part("Parquet");
  input.end();
  const count = [csv, json, parquet].filter((part) => part !== undefined).length;
  if (count > 1) throw new S3Error("ObjectSerializationConflict");
  if (csv !== undefined) return readCsvInput(csv);
  if (json !== undefined) {
    const type = json.text("Type")?.toUpperCase();
    json.end();
    if (type !== "LINES" && type !== "DOCUMENT") throw new S3Error("InvalidJsonType");
    return { format: "JSON", type };
  }
  if (parquet === undefined) throw new S3Error("InvalidDataSource");
  parquet.end();
  return { format: "PARQUET" };
}

function readCsvInput(csv: Part): CsvInput {
  const header = csv.text("FileHeaderInfo")?.toUpperCase() ?? "NONE";
  if (header !== "NONE" && header !== "USE" && header !== "IGNORE") {
    throw new S3Error("InvalidFileHeaderInfo");
  }
  const input: CsvInput = {
    format: "CSV",
    header,
    fieldDelimiter: csv.delimiter("FieldDelimiter", ","),
    recordDelimiter: csv.delimiter("RecordDelimiter", "\n"),
    quoteCharacter: csv.character("QuoteCharacter", '"', true),
    quoteEscapeCharacter: csv.character("QuoteEscapeCharacter", '"', false),
    comments: csv.character("Comments", "#", true),
    allowsQuotedRecordDelimiter: csv.flag("AllowQuotedRecordDelimiter") ?? false,
  };
  csv.end();
  const { fieldDelimiter, recordDelimiter, quoteCharacter } = input;
  requireDistinct(fieldDelimiter, recordDelimiter, quoteCharacter);
  return input;
}

function readOutput(output: Part): OutputFormat {
  const csv = output.part("CSV");
  const json = output.part("JSON");
  output.end();
  if (csv !== undefined && json !== undefined) throw new S3Error("ObjectSerializationConflict");
  if (json !== undefined) {
    const recordDelimiter = json.delimiter("RecordDelimiter", "\n");
    json.end();
    return { format: "JSON", recordDelimiter };
  }
  if (csv === undefined) throw missing("OutputSerialization");
  const quoteFields = csv.text("QuoteFields")?.toUpperCase() ?? "ASNEEDED";
  if (quoteFields !== "ASNEEDED" && quoteFields !== "ALWAYS") {
    throw new S3Error("InvalidQuoteFields");
  }
  const format: OutputFormat = {
    format: "CSV",
    fieldDelimiter: csv.delimiter("FieldDelimiter", ","),
    recordDelimiter: csv.delimiter("RecordDelimiter", "\n"),
    quoteCharacter: csv.character("QuoteCharacter", '"', true),
    quoteEscapeCharacter: csv.character("QuoteEscapeCharacter", '"', false),
    quotesAlways: quoteFields === "ALWAYS",
  };
  csv.end();
  requireDistinct(format.fieldDelimiter, format.recordDelimiter, format.quoteCharacter);
  return format;
}

// Otherwise a byte would have two meanings.
function requireDistinct(...texts: readonly string[]): void {
  const used = texts.filter((text) => text !== "");
  const isAmbiguous = used.some((text, index) =>
    used.some((other, at) => at !== index && other.startsWith(text)),
  );
  if (isAmbiguous) {
    throw new S3Error(
      "InvalidRequestParameter",
      "FieldDelimiter, RecordDelimiter and QuoteCharacter must differ.",
    );
  }
}

function readScanRange(range: Part | undefined): ScanRange | undefined {
  if (range === undefined) return undefined;
  const start = range.integer("Start");
  const end = range.integer("End");
  range.end();
  if (start === undefined && end === undefined) throw new S3Error("InvalidScanRange");
  // Without a start, the end is the number of the last bytes.
  if (start === undefined) return { suffix: end! };
  if (end !== undefined && end < start) throw new S3Error("InvalidScanRange");
  return { start, end };
}

/** A part of the document, whose members are all read before its end. */
class Part {
  readonly #members: Members;
  readonly #path: string;
  readonly #unread: Set<string>;

  constructor(members: Members, path: string) {
    this.#members = members;
    this.#path = path;
    this.#unread = new Set(Object.keys(members));
  }

  /** An object; an empty element of XML is one, too. */
  part(name: string): Part | undefined {
    const value = this.#take(name);
    if (value === undefined) return undefined;
    if (value === "") return new Part({}, this.#name(name));
    if (typeof value === "object") return new Part(value, this.#name(name));
    throw this.#invalid(name, "it must be an object");
  }

  text(name: string): string | undefined {
    const value = this.#take(name);
    if (value === undefined || typeof value === "string") return value;
    throw this.#invalid(name, "it must be a string");
  }

  flag(name: string): boolean | undefined {
    const value = this.#take(name);
    if (value === undefined || typeof value === "boolean") return value;
    const text = typeof value === "string" ? value.trim().toLowerCase() : "";
    if (text === "true" || text === "false") return text === "true";
    throw this.#invalid(name, "it must be true or false");
  }

  integer(name: string): number | undefined {
    const value = this.#take(name);
    if (value === undefined) return undefined;
    const text = typeof value === "object" ? "" : String(value).trim();
    if (!/^\d{1,15}$/.test(text)) throw new S3Error("InvalidScanRange");
    return Number(text);
  }

  delimiter(name: string, standard: string): string {
    const text = this.text(name);
    if (text === undefined) return standard;
    const bytes = Buffer.byteLength(text);
    if (bytes >= 1 && bytes <= DELIMITER_BYTES_MAX) return text;
    throw this.#invalid(name, `it must have 1 to ${DELIMITER_BYTES_MAX} bytes`);
  }

  /** One ASCII character. */
  character(name: string, standard: string, allowsNone: boolean): string {
    const text = this.text(name);
    if (text === undefined) return standard;
    if (text === "" && allowsNone) return text;
    if (text.length === 1 && text.charCodeAt(0) < 0x80) return text;
    throw this.#invalid(name, "it must be one ASCII character");
  }

  /** Throws for members that have not been read: unknown ones must not be ignored. */
  end(): void {
    const [unknown] = this.#unread;
    if (unknown !== undefined) throw this.#invalid(unknown.slice(0, 100), "it is unknown");
  }

  #take(name: string): Value | undefined {
    this.#unread.delete(name);
    const value = Object.hasOwn(this.#members, name) ? this.#members[name] : undefined;
    if (value === null || Array.isArray(value)) throw this.#invalid(name, "it has a wrong type");
    return value;
  }

  #name(name: string): string {
    return this.#path === "" ? name : `${this.#path}.${name}`;
  }

  #invalid(name: string, reason: string): S3Error {
    const code: ErrorCode = "InvalidRequestParameter";
    return new S3Error(code, `${this.#name(name)}: ${reason}.`);
  }
}

function missing(name: string): S3Error {
  return new S3Error("MissingRequiredParameter", `${name} is missing.`);
}
