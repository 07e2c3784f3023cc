// Asks questions about bytes in memory, without threads.
import assert from "node:assert/strict";
import { answerQuestion } from "../../src/select/answer-question.ts";
import type { SelectStats } from "../../src/select/messages.ts";
import type {
  Compression,
  CsvInput,
  InputFormat,
  OutputFormat,
  ScanRange,
} from "../../src/select/request.ts";

/** CSV as S3 reads it by default, with a header. */
export const CSV: CsvInput = {
  format: "CSV",
  header: "USE",
  fieldDelimiter: ",",
  recordDelimiter: "\n",
  quoteCharacter: '"',
  quoteEscapeCharacter: '"',
  comments: "#",
  allowsQuotedRecordDelimiter: false,
};
export const LINES: InputFormat = { format: "JSON", type: "LINES" };
export const DOCUMENT: InputFormat = { format: "JSON", type: "DOCUMENT" };
export const PARQUET: InputFormat = { format: "PARQUET" };
export const TO_JSON: OutputFormat = { format: "JSON", recordDelimiter: "\n" };
export const TO_CSV: OutputFormat = {
  format: "CSV",
  fieldDelimiter: ",",
  recordDelimiter: "\n",
  quoteCharacter: '"',
  quoteEscapeCharacter: '"',
  quotesAlways: false,
};

/** A question that differs from one about the CSV of one column and one row. */
export interface Asked {
  data?: string | Buffer;
  input?: InputFormat;
  output?: OutputFormat;
  compression?: Compression;
  scanRange?: ScanRange;
  /** Size of the pieces that the object is read in. */
  pieceBytes?: number;
  nowMs?: number;
}

/** The text of the result. */
export async function ask(expression: string, asked: Asked = {}): Promise<string> {
  return (await askWithStats(expression, asked)).text;
}

/** The records of a result in JSON. */
export async function askRows(expression: string, asked: Asked = {}): Promise<unknown[]> {
  const text = await ask(expression, { ...asked, output: TO_JSON });
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as unknown);
}

/** The text of the result, and the statistics. */
export async function askWithStats(
  expression: string,
  asked: Asked = {},
): Promise<{ text: string; stats: SelectStats }> {
  const { data = "a\n1\n", input = CSV, output = TO_JSON, pieceBytes = 65_536 } = asked;
  const bytes = Buffer.from(data as string);
  const sent: Buffer[] = [];
  let scannedBytes = 0;
  const stats = await answerQuestion(
    {
      expression,
      input,
      output,
      compression: asked.compression ?? "NONE",
      scanRange: asked.scanRange,
      reportsProgress: false,
    },
    {
      source: {
        sizeBytes: bytes.length,
        async *read(start, end) {
          for (let at = start; at < Math.min(end, bytes.length); at += pieceBytes) {
            const piece = bytes.subarray(at, Math.min(at + pieceBytes, end));
            scannedBytes += piece.length;
            yield piece;
          }
        },
      },
      nowMs: asked.nowMs ?? 0,
      scannedBytes: () => scannedBytes,
      onBegun: () => undefined,
      send: (records) => {
        sent.push(records);
        return undefined;
      },
    },
  );
  return { text: Buffer.concat(sent).toString(), stats };
}

/** Fails unless the result is the same for pieces of any size. */
export async function askInPieces(expression: string, asked: Asked): Promise<string> {
  const whole = await ask(expression, asked);
  for (const pieceBytes of [1, 2, 3, 7]) {
    assert.equal(await ask(expression, { ...asked, pieceBytes }), whole, `pieces of ${pieceBytes}`);
  }
  return whole;
}
