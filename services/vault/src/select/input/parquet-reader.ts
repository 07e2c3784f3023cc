// Rows of Parquet: reads the footer, then of each row group the chunks of the needed columns only.
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import {
  type AsyncBuffer,
  type ColumnMetaData,
  type Compressors,
  type DecodedArray,
  type FileMetaData,
  parquetMetadataAsync,
  parquetScan,
  parquetSchema,
  type ParquetScan,
  type RowGroup,
  type SchemaTree,
  snappyUncompress,
} from "hyparquet";
import { parquetHeader } from "hyparquet/src/column.js";
import type { Getter } from "../language/evaluator.ts";
import { SelectError } from "../language/fault.ts";
import type { ColumnReference, PathStep } from "../language/syntax.ts";
import type { Value } from "../language/value.ts";
import { decodeHadoopLz4, decodeLz4 } from "./lz4.ts";
import { unreadable } from "./parquet-fault.ts";
import { decodeNumbers, isNumberColumn, type NumberColumn } from "./parquet-numbers.ts";
import { chooseWrapper, PARQUET_PARSERS, wrapNested } from "./parquet-value.ts";
import { type RowFilter, selectAll, type Selection, selectRows } from "./row-filter.ts";
import { matchesName, readPosition, type RowFields, type RowReader } from "./row-reader.ts";

const FOOTER_BYTES = 64 * 1024;
const METADATA_BYTES_MAX = 16 * 1024 * 1024;
/** Compressed chunks of one row group that are held together, and one page when it is decompressed. */
const CHUNK_BYTES_MAX = 64 * 1024 * 1024;
const PAGE_BYTES_MAX = 64 * 1024 * 1024;
const PAGE_VALUES_MAX = 16 * 1024 * 1024;
/** Decoded values that are held together. */
const BATCH_VALUES = 2_000_000;
const BATCH_ROWS_MIN = 16_384;
/** Chunks of the next row group that are read while the rows of this one are. */
const AHEAD_BYTES_MAX = 8 * 1024 * 1024;
const MAGIC_BYTES = 4;

/** Reads a range of the object; `end` is exclusive. */
type ReadRange = (start: number, end: number) => Promise<Buffer>;

/** Options of the reader. */
export interface ParquetReaderOptions {
  readonly sizeBytes: number;
  readonly read: ReadRange;
  /** Leaves row groups and rows out that are not in the result. */
  readonly filter: RowFilter;
  /** Row groups that begin between these offsets are read. */
  readonly range: { readonly start: number; readonly end: number };
}

/** A column of the question. */
interface BoundColumn {
  readonly tree: SchemaTree;
  data: DecodedArray | undefined;
  /** In place of `data` for numbers of the batch. */
  numbers: NumberColumn | undefined;
}

/** A row group with rows in question. */
interface Group {
  readonly index: number;
  readonly group: RowGroup;
  /** The number of its first row in the file. */
  readonly rowStart: number;
  readonly rows: number;
}

/** The bytes of a column in a row group. */
interface Chunk {
  readonly start: number;
  readonly bytes: Buffer;
}

/** The next row group; `chunks` are missing if they are too large to be held beside those of another one. */
interface NextGroup extends Group {
  readonly chunks: readonly Chunk[] | undefined;
}

export class ParquetReader implements RowReader {
  readonly isText = false;
  readonly isReady = true;
  readonly #options: ParquetReaderOptions;
  readonly #metadata: FileMetaData;
  readonly #columns: readonly SchemaTree[];
  readonly #bound = new Map<string, BoundColumn>();
  readonly #file: ChunkFile;
  #scan: Promise<ParquetScan> | undefined;
  #group: Group | undefined;
  #next: Promise<NextGroup | undefined> | undefined;
  /** Rows of the group that have been decoded. */
  #decoded = 0;
  /** Rows of the batch that are returned; `undefined` for the first ones of it, and their number. */
  #selected: Uint32Array | undefined;
  #selectedCount = 0;
  #at = -1;
  /** The current row of the batch. */
  #row = -1;

  private constructor(options: ParquetReaderOptions, metadata: FileMetaData) {
    this.#options = options;
    this.#metadata = metadata;
    this.#columns = parquetSchema(metadata).children;
    this.#file = new ChunkFile(options.sizeBytes);
  }

  /** Reads the footer. Throws ParquetParsingError. */
  static async open(options: ParquetReaderOptions): Promise<ParquetReader> {
    return explain(async () => {
      const { sizeBytes, read } = options;
      if (sizeBytes < 3 * MAGIC_BYTES) throw unreadable("it is too short");
      const file: AsyncBuffer = {
        byteLength: sizeBytes,
        slice: async (start, end = sizeBytes) => {
          if (end - start > METADATA_BYTES_MAX) throw unreadable("its metadata is too large");
          return toArrayBuffer(await read(start, end));
        },
      };
      const metadata = await parquetMetadataAsync(file, {
        initialFetchSize: FOOTER_BYTES,
        parsers: PARQUET_PARSERS,
        geoparquet: false,
      });
      return new ParquetReader(options, metadata);
    });
  }

  next(): boolean {
    this.#at += 1;
    if (this.#at >= this.#selectedCount) return false;
    this.#row = this.#selected === undefined ? this.#at : this.#selected[this.#at]!;
    return true;
  }

  /** Decodes more rows; false after the last one. */
  refill(): Promise<boolean> {
    return explain(async () => {
      if (this.#group === undefined || this.#decoded >= this.#group.rows) await this.#openGroup();
      if (this.#group === undefined) return false;
      const columns = Math.max(1, this.#bound.size);
      // Pages of lists cannot be skipped, so that their group is decoded as a whole.
      const isFlat = [...this.#bound.values()].every(({ tree }) => isFlatColumn(tree));
      const rowsMax = Math.max(BATCH_ROWS_MIN, Math.floor(BATCH_VALUES / columns));
      const { rows: groupRows, rowStart: groupStart } = this.#group;
      const left = groupRows - this.#decoded;
      const rows = isFlat ? Math.min(left, rowsMax) : left;
      const rowStart = groupStart + this.#decoded;
      for (const column of this.#bound.values()) {
        column.data = undefined;
        column.numbers = rows === groupRows ? this.#decodeNumbers(this.#group, column) : undefined;
      }
      for (const [name, column] of this.#bound) {
        if (column.numbers !== undefined) continue;
        this.#scan ??= this.#openScan();
        column.data = await (
          await this.#scan
        ).readColumn({
          column: name,
          rowStart,
          rowEnd: rowStart + rows,
        });
        if (column.data.length < rows) throw unreadable("a column has too few values");
      }
      this.#decoded += rows;
      const selection = this.#selectRows(rows);
      this.#selected = selection?.rows;
      this.#selectedCount = selection?.count ?? rows;
      this.#at = -1;
      return true;
    });
  }

  // As far as the first conditions are about columns of numbers.
  #selectRows(count: number): Selection | undefined {
    let selection: Selection | undefined;
    for (const bound of this.#options.filter.first) {
      const named = this.#columns.filter(({ element }) => matchesName(bound.step, element.name));
      const numbers = named.length === 1 && this.#bound.get(named[0]!.element.name)?.numbers;
      // Larger limits would be rounded.
      if (!numbers || !Number.isSafeInteger(Number(bound.value))) break;
      selection ??= selectAll(count);
      selection = selectRows(selection, bound, numbers);
    }
    return selection;
  }

  bindValue(path: readonly PathStep[], column: ColumnReference): Getter {
    const [first, ...rest] = path;
    if (first === undefined || first.kind === "index") {
      throw new SelectError("InvalidKeyPath", undefined, column.place);
    }
    const bound = this.#bind(this.#findColumn(first, column));
    if (rest.length > 0) return () => wrapPart(this.#readPlain(bound), rest);
    return this.#bindWhole(bound);
  }

  bindCell(path: readonly PathStep[], column: ColumnReference): Getter {
    return this.bindValue(path, column);
  }

  bindFields(): () => RowFields {
    const names = this.#columns.map(({ element }) => element.name);
    const cells = this.#columns.map((tree) => this.#bindWhole(this.#bind(tree)));
    return () => ({ names, cells: cells.map((read) => read()) });
  }

  readObjectText(): undefined {
    return undefined;
  }

  #bindWhole(bound: BoundColumn): Getter {
    const wrap = chooseWrapper(bound.tree);
    const { type } = bound.tree.element;
    if (type !== "INT32" && type !== "INT64") return () => wrap(this.#readPlain(bound));
    return () => {
      const { numbers } = bound;
      if (numbers === undefined) return wrap(bound.data![this.#row]);
      const isNull = numbers.nulls !== undefined && numbers.nulls[this.#row] === 1;
      return isNull ? null : numbers.values[this.#row]!;
    };
  }

  #readPlain({ data, numbers }: BoundColumn): unknown {
    if (numbers === undefined) return data![this.#row];
    return numbers.nulls?.[this.#row] === 1 ? null : numbers.values[this.#row];
  }

  // Undefined for columns of other values, and if the values need the general decoder.
  #decodeNumbers(
    { group, rows }: Group,
    { tree: { element } }: BoundColumn,
  ): NumberColumn | undefined {
    if (!isNumberColumn(element)) return undefined;
    const metas = group.columns.flatMap(({ meta_data: meta }) =>
      meta?.path_in_schema.length === 1 && meta.path_in_schema[0] === element.name ? [meta] : [],
    );
    const [meta] = metas;
    if (meta === undefined || metas.length > 1) return undefined;
    const bytes = this.#file.find(locateChunk(meta)[0]);
    if (bytes === undefined || Number(meta.num_values) !== rows) return undefined;
    return decodeNumbers({ bytes, meta, element, compressors: COMPRESSORS });
  }

  #findColumn(step: Extract<PathStep, { kind: "name" }>, { place }: ColumnReference): SchemaTree {
    const named = this.#columns.filter(({ element }) => matchesName(step, element.name));
    if (named.length > 1) throw new SelectError("AmbiguousFieldName", undefined, place);
    const position = readPosition(step.name);
    const found = named[0] ?? (position === undefined ? undefined : this.#columns[position]);
    if (found !== undefined) return found;
    const name = JSON.stringify(step.name.slice(0, 100));
    throw new SelectError("EvaluatorBindingDoesNotExist", `There is no column ${name}.`, place);
  }

  #bind(tree: SchemaTree): BoundColumn {
    const { name } = tree.element;
    const known = this.#bound.get(name) ?? { tree, data: undefined, numbers: undefined };
    this.#bound.set(name, known);
    return known;
  }

  async #openGroup(): Promise<void> {
    const next = await (this.#next ?? this.#readGroup(undefined));
    this.#group = next;
    this.#decoded = 0;
    this.#scan = undefined;
    this.#file.clear();
    if (next === undefined) return;
    for (const chunk of next.chunks ?? (await this.#readChunks(next.group))) this.#file.add(chunk);
    this.#next = this.#readGroup(next);
    // Its fault matters only if rows of it are asked for.
    this.#next.catch(() => undefined);
  }

  async #readGroup(last: Group | undefined): Promise<NextGroup | undefined> {
    const next = this.#findGroup(last);
    if (next === undefined) return undefined;
    const bytes = this.#locateChunks(next.group).reduce(
      (sum, [start, end]) => sum + end - start,
      0,
    );
    const isHeld = last !== undefined && bytes > AHEAD_BYTES_MAX;
    return { ...next, chunks: isHeld ? undefined : await this.#readChunks(next.group) };
  }

  #findGroup(last: Group | undefined): Group | undefined {
    let rowStart = last === undefined ? 0 : last.rowStart + last.rows;
    const groups = this.#metadata.row_groups;
    for (let index = last === undefined ? 0 : last.index + 1; index < groups.length; index += 1) {
      const group = groups[index]!;
      const rows = Number(group.num_rows);
      if (!Number.isSafeInteger(rows) || rows < 0) throw unreadable("a row group has no size");
      const isRead = this.#isInRange(group) && !this.#options.filter.canSkip(group);
      if (isRead && rows > 0) return { index, group, rowStart, rows };
      rowStart += rows;
    }
    return undefined;
  }

  #isInRange(group: RowGroup): boolean {
    const { start, end } = this.#options.range;
    const offsets = group.columns.flatMap(({ meta_data: meta }) =>
      meta === undefined ? [] : [locateChunk(meta)[0]],
    );
    const first = Math.min(...offsets);
    return first >= start && first <= end;
  }

  /** The ranges of the needed columns, in the order of the file. */
  #locateChunks(group: RowGroup): [start: number, end: number, meta: ColumnMetaData][] {
    const chunks = group.columns.flatMap(({ meta_data: meta, file_path: path }) => {
      if (meta === undefined || path !== undefined) throw unreadable("a column has no data");
      if (!this.#bound.has(meta.path_in_schema[0] ?? "")) return [];
      const [start, end] = locateChunk(meta);
      if (start < MAGIC_BYTES || end > this.#options.sizeBytes - 2 * MAGIC_BYTES || end < start) {
        throw unreadable("a column is outside of the file");
      }
      return [[start, end, meta] satisfies [number, number, ColumnMetaData]];
    });
    return chunks.sort(([a], [b]) => a - b);
  }

  // Chunks next to each other are read at once.
  async #readChunks(group: RowGroup): Promise<Chunk[]> {
    const located = this.#locateChunks(group);
    const heldBytes = located.reduce((sum, [start, end]) => sum + end - start, 0);
    if (heldBytes > CHUNK_BYTES_MAX) throw new SelectError("OverMaxParquetBlockSize");
    const chunks: Chunk[] = [];
    for (let from = 0; from < located.length;) {
      let to = from + 1;
      while (to < located.length && located[to]![0] === located[to - 1]![1]) to += 1;
      const base = located[from]![0];
      const bytes = await this.#options.read(base, located[to - 1]![1]);
      for (const [start, end, meta] of located.slice(from, to)) {
        const chunk = bytes.subarray(start - base, end - base);
        checkPages(chunk, meta);
        chunks.push({ start, bytes: chunk });
      }
      from = to;
    }
    return chunks;
  }

  #openScan(): Promise<ParquetScan> {
    return parquetScan({
      file: this.#file,
      metadata: this.#metadata,
      columns: [...this.#bound.keys()],
      compressors: COMPRESSORS,
      parsers: PARQUET_PARSERS,
      useOffsetIndex: false,
    });
  }
}

/** The chunks of a row group, in place of the file. */
class ChunkFile implements AsyncBuffer {
  readonly byteLength: number;
  #chunks: Chunk[] = [];

  constructor(byteLength: number) {
    this.byteLength = byteLength;
  }

  clear(): void {
    this.#chunks = [];
  }

  add(chunk: Chunk): void {
    this.#chunks.push(chunk);
  }

  /** The chunk that begins here. */
  find(start: number): Buffer | undefined {
    return this.#chunks.find((one) => one.start === start)?.bytes;
  }

  // A range may cover several chunks; the bytes between them are not used.
  slice(start: number, end = this.byteLength): ArrayBuffer {
    if (end - start > 2 * CHUNK_BYTES_MAX) throw new SelectError("OverMaxParquetBlockSize");
    const exact = this.#chunks.find(
      (one) => one.start === start && one.bytes.length === end - start,
    );
    if (exact !== undefined) return toArrayBuffer(exact.bytes);
    const range = Buffer.alloc(end - start);
    for (const { start: at, bytes } of this.#chunks) {
      const from = Math.max(at, start);
      const to = Math.min(at + bytes.length, end);
      if (from < to) bytes.copy(range, from - start, from - at, to - at);
    }
    return toArrayBuffer(range);
  }
}

function toArrayBuffer(bytes: Buffer): ArrayBuffer {
  const isWhole = bytes.byteOffset === 0 && bytes.byteLength === bytes.buffer.byteLength;
  const { buffer } = isWhole ? bytes : new Uint8Array(bytes);
  return buffer as ArrayBuffer;
}

function locateChunk(meta: ColumnMetaData): [start: number, end: number] {
  const start = Number(meta.dictionary_page_offset || meta.data_page_offset);
  return [start, start + Number(meta.total_compressed_size)];
}

// The sizes in headers decide how much memory their pages take.
function checkPages(bytes: Buffer, meta: ColumnMetaData): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const reader = { view, offset: 0 };
  let values = 0;
  while (reader.offset < bytes.length - 1) {
    const header = parquetHeader(reader);
    const { compressed_page_size: compressed, uncompressed_page_size: size } = header;
    const isSize = (count: number | undefined, max: number): boolean =>
      Number.isInteger(count) && count! >= 0 && count! <= max;
    const page =
      header.data_page_header ?? header.data_page_header_v2 ?? header.dictionary_page_header;
    const isValid =
      isSize(compressed, bytes.length - reader.offset) &&
      isSize(size, PAGE_BYTES_MAX) &&
      (page === undefined || isSize(page.num_values, PAGE_VALUES_MAX));
    if (!isValid) throw unreadable("the size of a page is not valid");
    if (header.dictionary_page_header === undefined) values += page?.num_values ?? 0;
    reader.offset += compressed;
  }
  if (values > Number(meta.num_values)) throw unreadable("a column has too many values");
}

const COMPRESSORS: Compressors = {
  SNAPPY: (input, size) => {
    const output = new Uint8Array(size);
    snappyUncompress(input, output);
    return output;
  },
  GZIP: (input, size) => gunzipSync(input, { maxOutputLength: Math.max(1, size) }),
  ZSTD: (input, size) => zstdDecompressSync(input, { maxOutputLength: Math.max(1, size) }),
  BROTLI: (input, size) => brotliDecompressSync(input, { maxOutputLength: Math.max(1, size) }),
  LZ4: decodeHadoopLz4,
  LZ4_RAW: decodeLz4,
  LZO: () => {
    throw new SelectError("ParquetUnsupportedCompressionCodec");
  },
};

function isFlatColumn({ element, children }: SchemaTree): boolean {
  return children.length === 0 && element.repetition_type !== "REPEATED";
}

function wrapPart(value: unknown, steps: readonly PathStep[]): Value {
  let part: unknown = value;
  for (const step of steps) {
    if (typeof part !== "object" || part === null) return undefined;
    if (step.kind === "index") {
      if (!Array.isArray(part) || step.index >= part.length) return undefined;
      part = part[step.index];
      continue;
    }
    const names = Object.keys(part).filter((name) => matchesName(step, name));
    if (names.length > 1) throw new SelectError("AmbiguousFieldName");
    if (names.length === 0) return undefined;
    part = (part as Record<string, unknown>)[names[0]!];
  }
  return wrapNested(part);
}

// The decoder trusts the file: whatever it throws means that the file is damaged.
async function explain<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SelectError) throw error;
    const isOwn =
      error instanceof Error && /^(?:parquet|thrift|snappy|invalid|missing)/.test(error.message);
    throw unreadable(isOwn ? error.message : "its structure is damaged", error);
  }
}
