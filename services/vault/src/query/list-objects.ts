// Listing of live objects: one seek for each page and each common prefix, without reading the rows under a prefix.
//
// A page has a thousand rows, and its cost is per row: SQLite builds one JSON array for each column, the reader thread
// passes those texts on unchanged, and only the event loop creates objects from them.
import { buildKeyRange, findEndOfPrefix, findNextKey, type KeyRange } from "../index/key-range.ts";
import { decodeKey, parseChecksum } from "../index/records.ts";
import type { IndexConnection } from "../index/schema.ts";
import type { ListedObject, ListRequest, ListResult } from "../model/object.ts";

/** Columns of a listed row. */
export interface ListedRow {
  key: Uint8Array;
  size: number;
  etag: string;
  modified: number;
  class: string;
  checksum: string | null;
}

/** A listing of one bucket, by its number in the index. */
export type ListQuery = Omit<ListRequest, "bucket"> & { bucketId: number };

// Rows, one array per column.
interface Columns {
  keys: string[];
  sizes: number[];
  etags: string[];
  times: number[];
  classes: string[];
  checksums: (string | null)[];
}

/** A page as the reader thread returns it. */
export interface ListedPage {
  /** JSON of the columns. Without a delimiter it may have one extra row, if there are more. */
  columns: Record<keyof Columns, string>;
  commonPrefixes: string[];
  isTruncated: boolean;
  /** The position after the last row or common prefix; with a delimiter. */
  next?: ListResult["next"];
}

const KEYS_MAX = 1000;
/** Rows that are read first after a seek: the next one may be under a common prefix. */
const FIRST_READ_ROWS = 8;

/** Lists a page. */
export function listObjects(index: IndexConnection, query: ListQuery): ListedPage {
  const { bucketId, delimiter = "", prefix = "", after, maxKeys = KEYS_MAX } = query;
  const range = maxKeys > 0 ? buildKeyRange(prefix, after) : undefined;
  if (range === undefined) {
    return { columns: formatColumns(makeColumns()), commonPrefixes: [], isTruncated: false };
  }
  if (delimiter !== "") {
    return new FoldedPage(index, bucketId, maxKeys, prefix, delimiter).read(range);
  }
  const { count, ...columns } = readRows(index, bucketId, range, maxKeys + 1);
  return { columns, commonPrefixes: [], isTruncated: count > maxKeys };
}

/** Creates objects from a page. */
export function buildListResult(page: ListedPage, maxKeys = KEYS_MAX): ListResult {
  const { keys, sizes, etags, times, classes, checksums } = parseColumns(page.columns);
  // The extra row means that there are more.
  if (keys.length > maxKeys) keys.length = maxKeys;
  const objects = keys.map((key, at) => {
    const object: ListedObject = {
      key,
      etag: etags[at]!,
      sizeBytes: sizes[at]!,
      modifiedMs: times[at]!,
      storageClass: classes[at]!,
    };
    const checksum = checksums[at]!;
    if (checksum !== null) object.checksum = parseChecksum(checksum);
    return object;
  });
  const { commonPrefixes, isTruncated } = page;
  if (!isTruncated) return { objects, commonPrefixes, isTruncated };
  const next = page.next ?? { value: keys.at(-1)!, isPrefix: false };
  return { objects, commonPrefixes, isTruncated, next };
}

function readRows(
  index: IndexConnection,
  bucketId: number,
  { from, to }: KeyRange,
  limit: number,
): ListedPage["columns"] & { count: number } {
  const bound = to === undefined ? "" : "and key < ?";
  const values = to === undefined ? [] : [to];
  return index
    .sql(
      "select count(*) as count, json_group_array(cast(key as text)) as keys, " +
        "json_group_array(size) as sizes, json_group_array(etag) as etags, " +
        "json_group_array(modified) as times, json_group_array(class) as classes, " +
        "json_group_array(checksum) as checksums " +
        "from (select key, size, etag, modified, class, checksum from current " +
        `where bucket = ? and key >= ? ${bound} order by key limit ?)`,
    )
    .get(bucketId, from, ...values, limit) as ListedPage["columns"] & { count: number };
}

function makeColumns(): Columns {
  return { keys: [], sizes: [], etags: [], times: [], classes: [], checksums: [] };
}

function parseColumns(columns: ListedPage["columns"]): Columns {
  return {
    keys: JSON.parse(columns.keys) as string[],
    sizes: JSON.parse(columns.sizes) as number[],
    etags: JSON.parse(columns.etags) as string[],
    times: JSON.parse(columns.times) as number[],
    classes: JSON.parse(columns.classes) as string[],
    checksums: JSON.parse(columns.checksums) as (string | null)[],
  };
}

function formatColumns(columns: Columns): ListedPage["columns"] {
  return {
    keys: JSON.stringify(columns.keys),
    sizes: JSON.stringify(columns.sizes),
    etags: JSON.stringify(columns.etags),
    times: JSON.stringify(columns.times),
    classes: JSON.stringify(columns.classes),
    checksums: JSON.stringify(columns.checksums),
  };
}

// A page with common prefixes.
class FoldedPage {
  readonly #index: IndexConnection;
  readonly #bucketId: number;
  readonly #maxKeys: number;
  readonly #prefixChars: number;
  readonly #delimiter: string;
  readonly #columns = makeColumns();
  readonly #commonPrefixes: string[] = [];
  #next: ListResult["next"];
  #isTruncated = false;
  #rest: KeyRange | undefined;

  constructor(
    index: IndexConnection,
    bucketId: number,
    maxKeys: number,
    prefix: string,
    delimiter: string,
  ) {
    this.#index = index;
    this.#bucketId = bucketId;
    this.#maxKeys = maxKeys;
    this.#prefixChars = prefix.length;
    this.#delimiter = delimiter;
  }

  read(range: KeyRange): ListedPage {
    let left: KeyRange | undefined = range;
    let limit = FIRST_READ_ROWS;
    while (left !== undefined) {
      const { count, ...columns } = readRows(this.#index, this.#bucketId, left, limit);
      const isFolded = this.#take(parseColumns(columns), left);
      const isEnd = this.#isTruncated || (!isFolded && count < limit);
      left = isEnd ? undefined : this.#rest;
      // Runs of keys are read in growing batches, rows of common prefixes in small ones.
      limit = isFolded ? FIRST_READ_ROWS : Math.min(limit * 4, KEYS_MAX + 1);
    }
    return {
      columns: formatColumns(this.#columns),
      commonPrefixes: this.#commonPrefixes,
      isTruncated: this.#isTruncated,
      ...(this.#next === undefined ? {} : { next: this.#next }),
    };
  }

  // Adds rows up to and including the first common prefix, and sets `#rest` to the range after them. True if it reached a
  // common prefix.
  #take(columns: Columns, range: KeyRange): boolean {
    this.#rest = undefined;
    const { keys } = columns;
    for (const [row, key] of keys.entries()) {
      if (this.#columns.keys.length + this.#commonPrefixes.length === this.#maxKeys) {
        this.#isTruncated = true;
        return false;
      }
      const at = key.indexOf(this.#delimiter, this.#prefixChars);
      if (at >= 0) {
        const value = key.slice(0, at + this.#delimiter.length);
        this.#commonPrefixes.push(value);
        this.#next = { value, isPrefix: true };
        const from = findEndOfPrefix(Buffer.from(value));
        this.#rest = from === undefined ? undefined : { from, to: range.to };
        return true;
      }
      this.#add(columns, row);
      this.#next = { value: key, isPrefix: false };
    }
    const last = keys.at(-1);
    if (last !== undefined) {
      this.#rest = { from: findNextKey(Buffer.from(last)), to: range.to };
    }
    return false;
  }

  #add(columns: Columns, row: number): void {
    const { keys, sizes, etags, times, classes, checksums } = this.#columns;
    keys.push(columns.keys[row]!);
    sizes.push(columns.sizes[row]!);
    etags.push(columns.etags[row]!);
    times.push(columns.times[row]!);
    classes.push(columns.classes[row]!);
    checksums.push(columns.checksums[row]!);
  }
}

/** Converts a row to a listed object. */
export function buildListedObject(row: ListedRow): ListedObject {
  const object: ListedObject = {
    key: decodeKey(row.key),
    etag: row.etag,
    sizeBytes: row.size,
    modifiedMs: row.modified,
    storageClass: row.class,
  };
  if (row.checksum !== null) object.checksum = parseChecksum(row.checksum);
  return object;
}
