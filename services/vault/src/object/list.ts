// Listing live objects: a seek for each page and for each common prefix, never a walk over what a prefix hides.
import {
  buildKeyRange,
  findCommonPrefix,
  findEndOfPrefix,
  viewBytes,
  type KeyRange,
} from "../index/key-range.ts";
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

const COLUMNS = "key, size, etag, modified, class, checksum, owner";

/** Lists a page. */
export function listObjects(index: IndexConnection, query: ListQuery): ListResult {
  const maxKeys = query.maxKeys ?? 1000;
  const page: ListResult = { objects: [], commonPrefixes: [], isTruncated: false };
  const prefix = query.prefix ?? "";
  let range = maxKeys > 0 ? buildKeyRange(prefix, query.after) : undefined;
  const reader = new PageReader(page, maxKeys, Buffer.byteLength(prefix), query.delimiter);
  while (range !== undefined) range = reader.read(index, query.bucketId, range);
  if (!page.isTruncated) delete page.next;
  return page;
}

class PageReader {
  readonly #page: ListResult;
  readonly #maxKeys: number;
  readonly #prefixBytes: number;
  readonly #delimiter: Buffer | undefined;

  constructor(page: ListResult, maxKeys: number, prefixBytes: number, delimiter?: string) {
    this.#page = page;
    this.#maxKeys = maxKeys;
    this.#prefixBytes = prefixBytes;
    this.#delimiter = delimiter === undefined ? undefined : Buffer.from(delimiter);
  }

  /** Reads on until the page is full or a common prefix is to be skipped; returns the range that is left then. */
  read(index: IndexConnection, bucketId: number, range: KeyRange): KeyRange | undefined {
    const bound = range.to === undefined ? "" : "and key < ?";
    const values = range.to === undefined ? [] : [range.to];
    const rows = index
      .sql(
        `select ${COLUMNS} from current where bucket = ? and key >= ? ${bound} order by key limit 1001`,
      )
      .iterate(bucketId, range.from, ...values) as unknown as Iterable<ListedRow>;
    for (const row of rows) {
      const page = this.#page;
      if (page.objects.length + page.commonPrefixes.length === this.#maxKeys) {
        page.isTruncated = true;
        return undefined;
      }
      const key = viewBytes(row.key);
      const common = findCommonPrefix(key, this.#prefixBytes, this.#delimiter);
      if (common !== undefined) {
        const value = common.toString("utf8");
        page.commonPrefixes.push(value);
        page.next = { value, isPrefix: true };
        const from = findEndOfPrefix(common);
        return from === undefined ? undefined : { from, to: range.to };
      }
      const object = buildListedObject(row);
      page.objects.push(object);
      page.next = { value: object.key, isPrefix: false };
    }
    return undefined;
  }
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
