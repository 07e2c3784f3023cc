// Answers one question: rows in, records out.
import { parseQuery, ROW_NAME } from "./language/parser.ts";
import type { Query } from "./language/syntax.ts";
import { type ObjectSource, openRows } from "./input/row-input.ts";
import { createWriter } from "./output/record-writer.ts";
import type { SelectRequest } from "./request.ts";
import { QueryRun } from "./run/query-run.ts";
import { stripRowName } from "./run/row-names.ts";
import type { SelectStats } from "./messages.ts";

/** Text of records that is collected before it is sent, in UTF-16 units. */
const OUTPUT_LENGTH = 128 * 1024;
/** Rows without a result after which bytes that have been collected are sent. */
const ROWS_MAX = 50_000;

/** The object and the receiver of a question. */
export interface QuestionContext {
  readonly source: ObjectSource;
  readonly nowMs: number;
  /** Bytes of the object that have been read. */
  readonly scannedBytes: () => number;
  /** Called before the first row, with a function that tells what has been read and returned until then. */
  readonly onBegun: (readStats: () => SelectStats) => void;
  /** Passes records on; a promise means that the receiver is behind. */
  readonly send: (bytes: Buffer, stats: SelectStats) => Promise<void> | undefined;
}

/** Answers a question. Throws a SelectError. */
export async function answerQuestion(
  request: SelectRequest,
  { source, nowMs, scannedBytes, onBegun, send }: QuestionContext,
): Promise<SelectStats> {
  const query = parseFor(request);
  const input = await openRows(request, query, source, (path) => stripRowName(query, path));
  const writer = createWriter(request.output);
  const { reader } = input;
  const run = new QueryRun({ query, reader, writer, nowMs });
  let returnedBytes = 0;
  const readStats = (): SelectStats => ({
    scannedBytes: scannedBytes(),
    processedBytes: input.processedBytes,
    returnedBytes,
  });
  onBegun(readStats);
  const flush = (): Promise<void> | undefined => {
    const bytes = writer.take();
    returnedBytes += bytes.length;
    return send(bytes, readStats());
  };
  try {
    let rows = 0;
    while (!run.isDone) {
      if (reader.next()) {
        run.addRow();
        rows += 1;
        if (writer.length < OUTPUT_LENGTH) continue;
      } else {
        if (!(await input.refill())) break;
        if (rows < ROWS_MAX || writer.length === 0) continue;
      }
      rows = 0;
      await flush();
    }
    for (const _ of run.finish()) if (writer.length >= OUTPUT_LENGTH) await flush();
  } finally {
    await input.close();
  }
  if (writer.length > 0) await flush();
  return readStats();
}

// In CSV and Parquet, `_1` is the first column and never the row.
function parseFor({ expression, input }: SelectRequest): Query {
  const query = parseQuery(expression);
  if (input.format === "JSON") return query;
  return { ...query, rowNames: query.rowNames.filter((name) => name !== ROW_NAME) };
}
