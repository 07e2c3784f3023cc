// Numbers of a flat Parquet column, without an object per value.
// Source: Apache Parquet, Encodings.md (PLAIN, RLE and bit-packing hybrid, RLE_DICTIONARY) and README.md (data pages).
import type { ColumnMetaData, Compressors, SchemaElement } from "hyparquet";
import { parquetHeader } from "hyparquet/src/column.js";
import { unreadable } from "./parquet-fault.ts";

/** The values of one column chunk. */
export interface NumberColumn {
  readonly values: Float64Array;
  /** 1 for rows that are null; undefined if none is. */
  readonly nulls: Uint8Array | undefined;
}

/** Integers that this width of a signed type holds are written as they are; others are converted elsewhere. */
const PLAIN_INTEGERS: ReadonlySet<string | undefined> = new Set([
  undefined,
  "INT_8",
  "INT_16",
  "INT_32",
  "INT_64",
]);
const BYTES: Readonly<Record<string, number>> = { INT32: 4, FLOAT: 4, INT64: 8, DOUBLE: 8 };
/** With a byte more these fit into 32 bits. */
const BIT_WIDTH_MAX = 24;

/** True for a column of signed integers, floats or doubles at the top of the schema. */
export function isNumberColumn(element: SchemaElement): boolean {
  if (element.repetition_type === "REPEATED" || element.num_children !== undefined) return false;
  const { type, logical_type: logical, converted_type: converted } = element;
  if (type === undefined || !(type in BYTES)) return false;
  if (type === "FLOAT" || type === "DOUBLE") return logical === undefined;
  const isSigned = logical === undefined || (logical.type === "INTEGER" && logical.isSigned);
  return isSigned && PLAIN_INTEGERS.has(converted);
}

/** Options of {@link decodeNumbers}. */
export interface NumberChunk {
  /** The chunk, whose page sizes have been checked. */
  readonly bytes: Uint8Array;
  readonly meta: ColumnMetaData;
  readonly element: SchemaElement;
  readonly compressors: Compressors;
}

/**
 * Decodes a chunk of `isNumberColumn`. Undefined if it has another encoding than those above, or an integer that a double
 * does not hold exactly. Throws a ParquetParsingError if the chunk is damaged.
 */
export function decodeNumbers(chunk: NumberChunk): NumberColumn | undefined {
  const rows = Number(chunk.meta.num_values);
  const decoder = new NumberDecoder(chunk, rows);
  const { bytes } = chunk;
  const reader = {
    view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    offset: 0,
  };
  while (reader.offset < bytes.length - 1 && decoder.row < rows) {
    const header = parquetHeader(reader);
    const end = reader.offset + header.compressed_page_size;
    const page = bytes.subarray(reader.offset, end);
    reader.offset = end;
    if (!decoder.addPage(header, page)) return undefined;
  }
  if (decoder.row !== rows) throw unreadable("a column has too few values");
  return decoder.finish();
}

type PageHeader = ReturnType<typeof parquetHeader>;

class NumberDecoder {
  readonly #chunk: NumberChunk;
  readonly #values: Float64Array;
  readonly #isOptional: boolean;
  /** The levels or indices of a page. */
  readonly #words: Uint32Array;
  #nulls: Uint8Array | undefined;
  #dictionary: Float64Array | undefined;
  row = 0;

  constructor(chunk: NumberChunk, rows: number) {
    this.#chunk = chunk;
    this.#values = new Float64Array(rows);
    this.#isOptional = chunk.element.repetition_type === "OPTIONAL";
    this.#words = new Uint32Array(rows);
  }

  /** False if the page cannot be decoded here. */
  addPage(header: PageHeader, page: Uint8Array): boolean {
    const { data_page_header: v1, data_page_header_v2: v2, dictionary_page_header: head } = header;
    const size = header.uncompressed_page_size;
    if (header.type === "DICTIONARY_PAGE" && head !== undefined) {
      if (head.encoding !== "PLAIN" && head.encoding !== "PLAIN_DICTIONARY") return false;
      const dictionary = new Float64Array(head.num_values);
      if (!this.#readPlain(this.#expand(page, size), dictionary, 0, head.num_values)) return false;
      this.#dictionary = dictionary;
      return true;
    }
    if (header.type === "DATA_PAGE" && v1 !== undefined) {
      const bytes = this.#expand(page, size);
      if (!this.#isOptional) return this.#addValues(v1.encoding, bytes, v1.num_values, 0);
      if (v1.definition_level_encoding !== "RLE" || bytes.length < 4) return false;
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const end = 4 + view.getUint32(0, true);
      if (end > bytes.length) throw unreadable("the levels of a page are cut off");
      const nulls = this.#readNulls(bytes.subarray(4, end), v1.num_values);
      return this.#addValues(v1.encoding, bytes.subarray(end), v1.num_values, nulls);
    }
    if (header.type === "DATA_PAGE_V2" && v2 !== undefined) {
      const start = v2.repetition_levels_byte_length;
      const end = start + v2.definition_levels_byte_length;
      if (start !== 0 || end > page.length) throw unreadable("the levels of a page are cut off");
      const nulls = this.#isOptional ? this.#readNulls(page.subarray(0, end), v2.num_values) : 0;
      const packed = page.subarray(end);
      const isPacked = v2.is_compressed !== false && packed.length > 0;
      const bytes = isPacked ? this.#expand(packed, size - end) : packed;
      return this.#addValues(v2.encoding, bytes, v2.num_values, nulls);
    }
    return header.type === "INDEX_PAGE";
  }

  finish(): NumberColumn {
    return { values: this.#values, nulls: this.#nulls };
  }

  #expand(page: Uint8Array, size: number): Uint8Array {
    const { codec } = this.#chunk.meta;
    if (codec === "UNCOMPRESSED") return page;
    const expand = this.#chunk.compressors[codec];
    if (expand === undefined) throw unreadable(`the compression ${codec} is unknown`);
    const bytes = expand(page, size);
    if (bytes.length !== size) throw unreadable("a page has another size than its header says");
    return bytes;
  }

  // Marks the rows of a page that are null; returns their number.
  #readNulls(bytes: Uint8Array, count: number): number {
    if (this.row + count > this.#values.length) throw unreadable("a column has too many values");
    if (isOneRun(bytes, count)) return 0;
    const levels = this.#words.subarray(0, count);
    readHybrid(bytes, 1, levels);
    let nulls = 0;
    for (let at = 0; at < count; at++) if (levels[at] === 0) nulls++;
    if (nulls === 0) return 0;
    const marks = (this.#nulls ??= new Uint8Array(this.#values.length));
    for (let at = 0; at < count; at++) marks[this.row + at] = levels[at] === 0 ? 1 : 0;
    return nulls;
  }

  #addValues(encoding: string, bytes: Uint8Array, count: number, nulls: number): boolean {
    if (this.row + count > this.#values.length) throw unreadable("a column has too many values");
    const present = count - nulls;
    const isRead =
      encoding === "PLAIN"
        ? this.#readPlain(bytes, this.#values, this.row, present)
        : (encoding === "RLE_DICTIONARY" || encoding === "PLAIN_DICTIONARY") &&
          this.#readIndices(bytes, present);
    if (!isRead) return false;
    if (nulls > 0) this.#spread(count, present);
    this.row += count;
    return true;
  }

  // The values of a page stand next to each other: from the end each moves to its row.
  #spread(count: number, present: number): void {
    const [values, nulls, start] = [this.#values, this.#nulls!, this.row];
    let from = start + present - 1;
    for (let at = start + count - 1; at >= start; at--) {
      if (nulls[at] === 1) values[at] = 0;
      else values[at] = values[from--]!;
    }
  }

  #readPlain(bytes: Uint8Array, into: Float64Array, start: number, count: number): boolean {
    const type = this.#chunk.element.type!;
    if (bytes.length < count * BYTES[type]!) throw unreadable("a page is too short");
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    switch (type) {
      case "INT32":
        for (let at = 0; at < count; at++) into[start + at] = view.getInt32(at * 4, true);
        return true;
      case "FLOAT":
        for (let at = 0; at < count; at++) into[start + at] = view.getFloat32(at * 4, true);
        return true;
      case "DOUBLE":
        for (let at = 0; at < count; at++) into[start + at] = view.getFloat64(at * 8, true);
        return true;
      default:
        for (let at = 0; at < count; at++) {
          const value =
            view.getInt32(at * 8 + 4, true) * 4_294_967_296 + view.getUint32(at * 8, true);
          if (!Number.isSafeInteger(value)) return false;
          into[start + at] = value;
        }
        return true;
    }
  }

  #readIndices(bytes: Uint8Array, count: number): boolean {
    const dictionary = this.#dictionary;
    if (dictionary === undefined) throw unreadable("a page has no dictionary");
    if (count === 0) return true;
    const width = bytes[0] ?? 0;
    if (width > BIT_WIDTH_MAX) return false;
    const indices = this.#words.subarray(0, count);
    if (width > 0) readHybrid(bytes.subarray(1), width, indices);
    else indices.fill(0);
    const [values, start, size] = [this.#values, this.row, dictionary.length];
    let last = 0;
    for (let at = 0; at < count; at++) {
      const index = indices[at]!;
      if (index > last) last = index;
      values[start + at] = dictionary[index]!;
    }
    if (last >= size) throw unreadable("a value is not in the dictionary");
    return true;
  }
}

/**
 * Fills `into` with numbers of `width` bits, 1 to 24, in runs of equal ones and in packed groups of eight. Throws a
 * ParquetParsingError if there are too few.
 */
function readHybrid(bytes: Uint8Array, width: number, into: Uint32Array): void {
  let at = 0;
  let filled = 0;
  while (filled < into.length) {
    let header = 0;
    let shift = 0;
    let byte: number;
    do {
      if (at >= bytes.length || shift > 28) throw unreadable("a run has no length");
      byte = bytes[at++]!;
      header += (byte & 0x7f) * 2 ** shift;
      shift += 7;
    } while (byte >= 0x80);
    const count = Math.min(
      into.length - filled,
      Math.floor(header / 2) * (header % 2 === 1 ? 8 : 1),
    );
    if (count === 0) throw unreadable("a run is empty");
    if (header % 2 === 1) {
      if (at + Math.ceil((count * width) / 8) > bytes.length) throw unreadable("a run is cut off");
      unpack(bytes, at, width, into, filled, count);
      at += Math.floor(header / 2) * width;
    } else {
      const size = Math.ceil(width / 8);
      if (at + size > bytes.length) throw unreadable("a run is cut off");
      let value = 0;
      for (let index = size - 1; index >= 0; index--) value = value * 256 + bytes[at + index]!;
      into.fill(value, filled, filled + count);
      at += size;
    }
    filled += count;
  }
}

/** True if levels begin with a run of ones that covers all of them: no value is null. */
function isOneRun(bytes: Uint8Array, count: number): boolean {
  let length = 0;
  let at = 0;
  for (let shift = 0; shift <= 28 && at < bytes.length; shift += 7) {
    const byte = bytes[at++]!;
    length += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) break;
  }
  return length % 2 === 0 && length / 2 >= count && bytes[at] === 1;
}

// Numbers of some bits each, from the lowest bit of the first byte on.
function unpack(
  bytes: Uint8Array,
  start: number,
  width: number,
  into: Uint32Array,
  from: number,
  count: number,
): void {
  const mask = 2 ** width - 1;
  const view = new DataView(bytes.buffer, bytes.byteOffset + start, bytes.byteLength - start);
  // A number of 24 bits at most is in the 32 bits from its first byte on.
  const wordMax = view.byteLength - 4;
  const whole = Math.min(count, wordMax < 0 ? 0 : Math.floor((wordMax * 8) / width) + 1);
  let index = 0;
  let bit = 0;
  for (; index < whole; index++, bit += width) {
    into[from + index] = (view.getUint32(bit >>> 3, true) >>> (bit & 7)) & mask;
  }
  for (; index < count; index++, bit += width) {
    let word = 0;
    for (let byte = 3; byte >= 0; byte--) {
      word = (word << 8) | (bytes[start + (bit >>> 3) + byte] ?? 0);
    }
    into[from + index] = (word >>> (bit & 7)) & mask;
  }
}
