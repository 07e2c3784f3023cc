// Opens the rows of an object in the format of the request.
import { SelectError } from "../language/fault.ts";
import type { PathStep, Query } from "../language/syntax.ts";
import type { CsvInput, SelectRequest } from "../request.ts";
import { CsvReader } from "./csv-reader.ts";
import { decompress } from "./decompress.ts";
import { JsonReader } from "./json-reader.ts";
import { createRowFilter } from "./row-filter.ts";
import { RECORD_BYTES_MAX, type RowReader, type StreamReader } from "./row-reader.ts";
import { checkUtf8 } from "./utf8-check.ts";

/** The object of a question. */
export interface ObjectSource {
  readonly sizeBytes: number;
  /** Reads a range, of which `end` is exclusive. Returning early ends the reading. */
  read(start: number, end: number): AsyncGenerator<Buffer, void, undefined>;
}

/** The rows of an object. */
export interface RowInput {
  readonly reader: RowReader;
  /** Reads on after `next` has returned false; false at the end of the rows. */
  refill(): Promise<boolean>;
  /** Ends the reading. */
  close(): Promise<void>;
  /** Bytes after decompression. */
  readonly processedBytes: number;
}

/** The bytes of the object that records may begin in; both are included, `end` is -1 for no bytes. */
interface Range {
  readonly start: number;
  readonly end: number;
}

/** Opens the rows. `strip` removes the name of the row from paths. Throws a SelectError. */
export async function openRows(
  request: SelectRequest,
  query: Query,
  source: ObjectSource,
  strip: (path: readonly PathStep[]) => readonly PathStep[],
): Promise<RowInput> {
  const { input } = request;
  const range = resolveRange(request, source.sizeBytes);
  if (input.format !== "JSON" && query.source.length > 0) {
    throw new SelectError("InvalidKeyPath", "Paths in FROM are for JSON only.");
  }
  if (input.format === "PARQUET") {
    // Only questions about Parquet load its decoder.
    const { ParquetReader } = await import("./parquet-reader.ts");
    let processedBytes = 0;
    const reader = await ParquetReader.open({
      sizeBytes: source.sizeBytes,
      range,
      filter: createRowFilter(query.where, strip),
      read: async (start, end) => {
        const pieces: Buffer[] = [];
        for await (const piece of source.read(start, end)) pieces.push(piece);
        const bytes = Buffer.concat(pieces);
        processedBytes += bytes.length;
        return bytes;
      },
    });
    return {
      reader,
      refill: () => reader.refill(),
      close: () => Promise.resolve(),
      get processedBytes() {
        return processedBytes;
      },
    };
  }
  if (input.format === "JSON") {
    const isLines = input.type === "LINES";
    const reader = new JsonReader({ isLines, source: query.source });
    return new StreamInput(reader, source, range, request, "\n");
  }
  const reader = new CsvReader(input);
  if (range.start > 0 && input.header !== "NONE") {
    reader.useHeader(await readHeader(input, source));
  }
  const stream = new StreamInput(reader, source, range, request, input.recordDelimiter);
  while (!reader.isReady) if (!(await stream.refill())) break;
  return stream;
}

function resolveRange({ scanRange, input, compression }: SelectRequest, sizeBytes: number): Range {
  if (scanRange === undefined) return { start: 0, end: sizeBytes - 1 };
  const isSplittable =
    compression === "NONE" &&
    !(input.format === "JSON" && input.type === "DOCUMENT") &&
    !(input.format === "CSV" && input.allowsQuotedRecordDelimiter);
  if (!isSplittable) throw new SelectError("UnsupportedScanRangeInput");
  if ("suffix" in scanRange) {
    return { start: Math.max(0, sizeBytes - scanRange.suffix), end: sizeBytes - 1 };
  }
  const { start, end = sizeBytes - 1 } = scanRange;
  if (end < start && scanRange.end !== undefined) throw new SelectError("InvalidScanRange");
  if (start >= sizeBytes && sizeBytes > 0) throw new SelectError("InvalidScanRange");
  return { start, end: Math.min(end, sizeBytes - 1) };
}

// The first record of the object, for a range that does not begin with it.
async function readHeader(
  input: CsvInput,
  source: ObjectSource,
): Promise<readonly string[] | undefined> {
  const reader = new CsvReader(input);
  for await (const piece of checkUtf8(source.read(0, source.sizeBytes))) {
    reader.feed(piece);
    if (reader.isReady) break;
  }
  reader.end();
  return reader.isReady ? reader.header : undefined;
}

/** Bytes of a stream, fed to its reader piece by piece. */
class StreamInput implements RowInput {
  readonly reader: StreamReader;
  readonly #pieces: AsyncGenerator<Buffer, void, undefined>;
  #isEnded = false;
  processedBytes = 0;

  constructor(
    reader: StreamReader,
    source: ObjectSource,
    { start, end }: Range,
    { compression, scanRange }: SelectRequest,
    delimiter: string,
  ) {
    this.reader = reader;
    // The record that begins at `start` follows a delimiter.
    const delimiterBytes = Buffer.from(delimiter);
    const first = Math.max(0, start - delimiterBytes.length);
    const stopAfter = (skipped: number): void => {
      if (scanRange !== undefined) reader.stopAfter(end + 1 - first - skipped);
    };
    const raw = source.read(first, source.sizeBytes);
    const aligned = start === 0 ? raw : skipPast(raw, delimiterBytes, stopAfter);
    if (start === 0) stopAfter(0);
    this.#pieces = checkUtf8(decompress(compression, aligned), start === 0 ? stopAfter : undefined);
  }

  async refill(): Promise<boolean> {
    if (this.#isEnded || this.reader.isStopped) return false;
    const { value: piece } = await this.#pieces.next();
    if (piece === undefined) {
      this.#isEnded = true;
      this.reader.end();
      return true;
    }
    this.processedBytes += piece.length;
    this.reader.feed(piece);
    return true;
  }

  async close(): Promise<void> {
    await this.#pieces.return();
  }
}

// Drops the bytes up to the first delimiter, and reports their number.
async function* skipPast(
  pieces: AsyncGenerator<Buffer, void, undefined>,
  delimiter: Buffer,
  onFound: (skipped: number) => void,
): AsyncGenerator<Buffer, void, undefined> {
  let rest = Buffer.alloc(0);
  let dropped = 0;
  let isFound = false;
  for await (const piece of pieces) {
    if (isFound) {
      yield piece;
      continue;
    }
    const bytes = Buffer.concat([rest, piece]);
    const at = bytes.indexOf(delimiter);
    if (at >= 0) {
      isFound = true;
      onFound(dropped + at + delimiter.length);
      yield bytes.subarray(at + delimiter.length);
      continue;
    }
    const kept = Math.min(bytes.length, delimiter.length - 1);
    dropped += bytes.length - kept;
    rest = bytes.subarray(bytes.length - kept);
    // The record began before the range.
    if (dropped > RECORD_BYTES_MAX) throw new SelectError("OverMaxRecordSize");
  }
}
