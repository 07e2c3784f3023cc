// The request of a question, after it has been read from JSON or XML.

/** Options of CSV objects; delimiters are at most four bytes, quotes and escapes are one ASCII character. */
export interface CsvInput {
  readonly format: "CSV";
  readonly header: "NONE" | "USE" | "IGNORE";
  readonly fieldDelimiter: string;
  readonly recordDelimiter: string;
  /** "" if no character quotes fields. */
  readonly quoteCharacter: string;
  readonly quoteEscapeCharacter: string;
  /** Lines that begin with it are skipped. "" for none. */
  readonly comments: string;
  readonly allowsQuotedRecordDelimiter: boolean;
}

/** Options of JSON objects. */
interface JsonInput {
  readonly format: "JSON";
  readonly type: "LINES" | "DOCUMENT";
}

interface ParquetInput {
  readonly format: "PARQUET";
}

export type InputFormat = CsvInput | JsonInput | ParquetInput;

export type Compression = "NONE" | "GZIP" | "BZIP2" | "ZSTD";

/** The form of the result. */
export type OutputFormat =
  | { readonly format: "JSON"; readonly recordDelimiter: string }
  | {
      readonly format: "CSV";
      readonly fieldDelimiter: string;
      readonly recordDelimiter: string;
      readonly quoteCharacter: string;
      readonly quoteEscapeCharacter: string;
      readonly quotesAlways: boolean;
    };

/** Records that begin between `start` and `end`, both included, are read; or those in the last `suffix` bytes. */
export type ScanRange =
  | { readonly start: number; readonly end: number | undefined }
  | { readonly suffix: number };

/** A question about the content of an object. */
export interface SelectRequest {
  readonly expression: string;
  readonly input: InputFormat;
  readonly compression: Compression;
  readonly output: OutputFormat;
  readonly scanRange: ScanRange | undefined;
  /** Progress messages are wanted. */
  readonly reportsProgress: boolean;
}
