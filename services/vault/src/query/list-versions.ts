// Listing of versions and delete markers, by key, newest first.
import {
  buildKeyRange,
  findCommonPrefix,
  findEndOfPrefix,
  viewBytes,
  type KeyRange,
} from "../index/key-range.ts";
import { encodeKey, type VersionRow } from "../index/records.ts";
import type { IndexConnection } from "../index/schema.ts";
import { buildListedObject, type ListedRow } from "./list-objects.ts";
import type { ListedVersion, ListVersionsRequest, ListVersionsResult } from "../model/version.ts";

/** A listing of one bucket, by its number in the index. */
export type ListVersionsQuery = Omit<ListVersionsRequest, "bucket"> & { bucketId: number };

type Row = ListedRow & { version: string; latest: number; marker: number } & Pick<
    VersionRow,
    "retain_mode" | "retain_until" | "hold"
  >;

const COLUMNS =
  "key, seq, version, size, etag, modified, class, checksum, retain_mode, retain_until, hold";
// A row of `versions` without `noncurrent_since` is a delete marker that is the newest version of its key.
const OLDER_COLUMNS = `${COLUMNS}, marker, noncurrent_since is null as latest`;

/** Lists a page. */
export function listVersions(index: IndexConnection, query: ListVersionsQuery): ListVersionsResult {
  const page: ListVersionsResult = { versions: [], commonPrefixes: [], isTruncated: false };
  const maxKeys = query.maxKeys ?? 1000;
  if (maxKeys === 0) return page;
  const prefix = query.prefix ?? "";
  const reader = new PageReader(page, maxKeys, Buffer.byteLength(prefix), query.delimiter);
  let range = buildKeyRange(prefix, query.after);
  if (query.after?.versionId !== undefined && !query.after.isPrefix) {
    const key = encodeKey(query.after.value);
    const seq = findSequence(index, query.bucketId, key, query.after.versionId);
    if (seq === undefined) {
      // It has been deleted since: the remaining versions of its key are not listed yet.
      range = buildKeyRange(prefix, undefined);
      if (range !== undefined && Buffer.compare(range.from, key) < 0) range.from = viewBytes(key);
    } else if (!reader.readRestOfKey(index, query.bucketId, key, seq)) {
      return page;
    }
  }
  while (range !== undefined) range = reader.read(index, query.bucketId, range);
  if (!page.isTruncated) delete page.next;
  return page;
}

class PageReader {
  readonly #page: ListVersionsResult;
  readonly #maxKeys: number;
  readonly #prefixBytes: number;
  readonly #delimiter: Buffer | undefined;

  constructor(page: ListVersionsResult, maxKeys: number, prefixBytes: number, delimiter?: string) {
    this.#page = page;
    this.#maxKeys = maxKeys;
    this.#prefixBytes = prefixBytes;
    this.#delimiter = delimiter === undefined ? undefined : Buffer.from(delimiter);
  }

  /** Lists the versions of a key that are older than `seq`. False if the page is full. */
  readRestOfKey(index: IndexConnection, bucketId: number, key: Uint8Array, seq: number): boolean {
    const rows = index
      .sql(
        `select ${OLDER_COLUMNS} from versions where bucket = ? and key = ? and seq < ? ` +
          "order by seq desc limit 1001",
      )
      .iterate(bucketId, key, seq) as unknown as Iterable<Row>;
    for (const row of rows) if (!this.#add(row)) return false;
    return true;
  }

  /**
   * Adds the versions in `range` to the page, up to and including the first common prefix. Returns the range after that
   * prefix, which is to be read next; `undefined` if the range is done or the page is full.
   */
  read(index: IndexConnection, bucketId: number, range: KeyRange): KeyRange | undefined {
    const bound = range.to === undefined ? "" : "and key < ?";
    const values =
      range.to === undefined ? [bucketId, range.from] : [bucketId, range.from, range.to];
    const where = `where bucket = ? and key >= ? ${bound}`;
    const rows = index
      .sql(
        `select ${COLUMNS}, 0 as marker, 1 as latest from current ${where} ` +
          `union all select ${OLDER_COLUMNS} from versions ${where} order by 1, 2 desc limit 1001`,
      )
      .iterate(...values, ...values) as unknown as Iterable<Row>;
    for (const row of rows) {
      const key = viewBytes(row.key);
      const common = findCommonPrefix(key, this.#prefixBytes, this.#delimiter);
      if (common === undefined) {
        if (!this.#add(row)) return undefined;
        continue;
      }
      if (this.#isFull()) return undefined;
      const value = common.toString("utf8");
      this.#page.commonPrefixes.push(value);
      this.#page.next = { value, isPrefix: true };
      const from = findEndOfPrefix(common);
      return from === undefined ? undefined : { from, to: range.to };
    }
    return undefined;
  }

  #add(row: Row): boolean {
    if (this.#isFull()) return false;
    const version: ListedVersion = {
      ...buildListedObject(row),
      versionId: row.version,
      isLatest: row.latest === 1,
      isDeleteMarker: row.marker === 1,
    };
    const { retain_mode: mode, retain_until: untilMs } = row;
    if (mode !== null && untilMs !== null) version.retention = { mode, untilMs };
    if (row.hold === 1) version.legalHold = true;
    this.#page.versions.push(version);
    this.#page.next = { value: version.key, isPrefix: false, versionId: version.versionId };
    return true;
  }

  #isFull(): boolean {
    if (this.#page.versions.length + this.#page.commonPrefixes.length < this.#maxKeys) return false;
    this.#page.isTruncated = true;
    return true;
  }
}

function findSequence(
  index: IndexConnection,
  bucketId: number,
  key: Uint8Array,
  version: string,
): number | undefined {
  for (const table of ["current", "versions"]) {
    const row = index
      .sql(`select seq from ${table} where bucket = ? and key = ? and version = ?`)
      .get(bucketId, key, version);
    if (row !== undefined) return Number(row["seq"]);
  }
  return undefined;
}
