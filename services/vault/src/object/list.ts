// Listing live objects: a seek for each page and for each common prefix, never a walk over what a prefix hides.
//
// A page is a thousand rows, and what it costs is rows: SQLite makes them JSON, the reader thread hands that text on as it
// is, and only the event loop makes objects of it.
import { buildKeyRange, findEndOfPrefix, findNextKey, type KeyRange } from "../index/key-range.ts";
import { decodeKey, parseChecksum, parseOwner } from "../index/records.ts";
import type { IndexConnection } from "../index/schema.ts";
import type { ListedObject, ListRequest, ListResult } from "./types.ts";

/** Columns of a listed row. */
export interface ListedRow {
  key: Uint8Array;
  size: number;
  etag: string;
  modified: number;
  class: string;
  checksum: string | null;
  owner: string | null;
}

/** A listing of one bucket, by its number. */
export type ListQuery = Omit<ListRequest, "bucket"> & { bucketId: number };

/** A page as the reader thread answers it. */
export interface ListedPage {
  /** JSON of the rows; without a delimiter there may be one more than was asked for, if there are more. */
  rows: string;
  commonPrefixes: string[];
  isTruncated: boolean;
  /** Behind the last row or common prefix; with a delimiter. */
  next?: ListResult["next"];
}

type RowValues = [
  key: string,
  size: number,
  etag: string,
  modified: number,
  storageClass: string,
  checksum: string | null,
  owner: string | null,
];

const KEYS_MAX = 1000;
/** Rows that are read behind a seek at first: the next one may be under a common prefix. */
const FIRST_READ_ROWS = 8;

/** Lists a page. */
export function listObjects(index: IndexConnection, query: ListQuery): ListedPage {
  const { bucketId, delimiter = "", prefix = "", after, maxKeys = KEYS_MAX } = query;
  const range = maxKeys > 0 ? buildKeyRange(prefix, after) : undefined;
  if (range === undefined) return { rows: "[]", commonPrefixes: [], isTruncated: false };
  if (delimiter !== "") {
    return new FoldedPage(index, bucketId, maxKeys, prefix, delimiter).read(range);
  }
  const { rows, count } = readRows(index, bucketId, range, maxKeys + 1);
  return { rows, commonPrefixes: [], isTruncated: count > maxKeys };
}

/** Makes objects of a page. */
export function buildListResult(page: ListedPage, maxKeys = KEYS_MAX): ListResult {
  const rows = JSON.parse(page.rows) as RowValues[];
  // The one that tells that there are more.
  if (rows.length > maxKeys) rows.length = maxKeys;
  const owners = new Map<string, ListedObject["owner"]>();
  const objects = rows.map((row) => buildObject(row, owners));
  const { commonPrefixes, isTruncated } = page;
  if (!isTruncated) return { objects, commonPrefixes, isTruncated };
  const next = page.next ?? { value: objects.at(-1)!.key, isPrefix: false };
  return { objects, commonPrefixes, isTruncated, next };
}

function readRows(
  index: IndexConnection,
  bucketId: number,
  { from, to }: KeyRange,
  limit: number,
): { rows: string; count: number } {
  const bound = to === undefined ? "" : "and key < ?";
  const values = to === undefined ? [] : [to];
  return index
    .sql(
      "select count(*) as count, json_group_array(json_array(" +
        "cast(key as text), size, etag, modified, class, checksum, owner)) as rows " +
        `from (select * from current where bucket = ? and key >= ? ${bound} order by key limit ?)`,
    )
    .get(bucketId, from, ...values, limit) as { rows: string; count: number };
}

// A page in which what lies behind a delimiter is one entry.
class FoldedPage {
  readonly #index: IndexConnection;
  readonly #bucketId: number;
  readonly #maxKeys: number;
  readonly #prefixChars: number;
  readonly #delimiter: string;
  readonly #rows: RowValues[] = [];
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
      const rows = JSON.parse(
        readRows(this.#index, this.#bucketId, left, limit).rows,
      ) as RowValues[];
      const isFolded = this.#take(rows, left);
      const isEnd = this.#isTruncated || (!isFolded && rows.length < limit);
      left = isEnd ? undefined : this.#rest;
      // A run of keys is read in larger and larger pieces, a row of common prefixes in small ones.
      limit = isFolded ? FIRST_READ_ROWS : Math.min(limit * 4, KEYS_MAX + 1);
    }
    return {
      rows: JSON.stringify(this.#rows),
      commonPrefixes: this.#commonPrefixes,
      isTruncated: this.#isTruncated,
      ...(this.#next === undefined ? {} : { next: this.#next }),
    };
  }

  // Takes rows up to the first common prefix, and notes what is left behind them; true where it came to one.
  #take(rows: readonly RowValues[], range: KeyRange): boolean {
    this.#rest = undefined;
    for (const row of rows) {
      if (this.#rows.length + this.#commonPrefixes.length === this.#maxKeys) {
        this.#isTruncated = true;
        return false;
      }
      const [key] = row;
      const at = key.indexOf(this.#delimiter, this.#prefixChars);
      if (at >= 0) {
        const value = key.slice(0, at + this.#delimiter.length);
        this.#commonPrefixes.push(value);
        this.#next = { value, isPrefix: true };
        const from = findEndOfPrefix(Buffer.from(value));
        this.#rest = from === undefined ? undefined : { from, to: range.to };
        return true;
      }
      this.#rows.push(row);
      this.#next = { value: key, isPrefix: false };
    }
    const last = rows.at(-1);
    if (last !== undefined) {
      this.#rest = { from: findNextKey(Buffer.from(last[0])), to: range.to };
    }
    return false;
  }
}

function buildObject(
  [key, sizeBytes, etag, modifiedMs, storageClass, checksum, owner]: RowValues,
  owners: Map<string, ListedObject["owner"]>,
): ListedObject {
  const object: ListedObject = { key, etag, sizeBytes, modifiedMs, storageClass };
  if (checksum !== null) object.checksum = parseChecksum(checksum);
  if (owner === null) return object;
  let known = owners.get(owner);
  if (known === undefined) {
    known = parseOwner(owner);
    owners.set(owner, known);
  }
  object.owner = known;
  return object;
}

/** What callers see of a listed row. */
export function buildListedObject(row: ListedRow): ListedObject {
  const object: ListedObject = {
    key: decodeKey(row.key),
    etag: row.etag,
    sizeBytes: row.size,
    modifiedMs: row.modified,
    storageClass: row.class,
  };
  if (row.checksum !== null) object.checksum = parseChecksum(row.checksum);
  if (row.owner !== null) object.owner = parseOwner(row.owner);
  return object;
}
