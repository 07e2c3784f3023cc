// Jobs as they are stored, the lines of their reports, and the objects that they select.
import { findEndOfPrefix, viewBytes } from "../index/key-range.ts";
import { decodeKey } from "../index/records.ts";
import type { IndexConnection } from "../index/schema.ts";
import type {
  JobFilter,
  JobItem,
  JobPosition,
  JobRow,
  JobSpec,
  StoredJobSpec,
} from "../model/job.ts";

const COLUMNS = "number, id, operation, state, maker, created, ended, sequence, progress";
const ITEM_COLUMNS = "key, seq, version, size, etag, modified, class, tags, blob, detail";

/** Jobs, the newest first; with `maker` those of one person. `before` is the number of the last one on the page before. */
export function listJobs(
  index: IndexConnection,
  { before, maker }: { before: number | undefined; maker: string | undefined },
  jobsMax: number,
): JobRow[] {
  return index
    .sql(
      `select ${COLUMNS} from jobs where (?1 is null or number < ?1) and (?2 is null or maker = ?2) order by number desc limit ?3`,
    )
    .all(before ?? null, maker ?? null, jobsMax)
    .map(readJob);
}

/** A job; `undefined` if there is none. */
export function findJob(index: IndexConnection, id: string): JobRow | undefined {
  const row = index.sql(`select ${COLUMNS} from jobs where id = ?`).get(id);
  return row === undefined ? undefined : readJob(row);
}

/** The specification of a job. */
export function findJobSpec(index: IndexConnection, id: string): StoredJobSpec | undefined {
  const row = index.sql("select spec from jobs where id = ?").get(id);
  return row === undefined ? undefined : (JSON.parse(String(row["spec"])) as StoredJobSpec);
}

/** Jobs in a state, the oldest first. */
export function listJobsIn(index: IndexConnection, state: string, jobsMax: number): JobRow[] {
  return index
    .sql(`select ${COLUMNS} from jobs where state = ? order by number limit ?`)
    .all(state, jobsMax)
    .map(readJob);
}

/** Texts of lines of a job behind the number `after`. */
export function listJobLines(
  index: IndexConnection,
  job: number,
  after: number,
  rowsMax: number,
): { number: number; lines: string }[] {
  return index
    .sql("select number, lines from job_lines where job = ? and number > ? order by number limit ?")
    .all(job, after, rowsMax) as unknown as { number: number; lines: string }[];
}

function readJob(row: Record<string, unknown>): JobRow {
  const { number, id, operation, state, maker, created, ended, sequence, progress } = row;
  return {
    number: Number(number),
    id: String(id),
    operation: String(operation),
    state: String(state),
    maker: String(maker),
    createdMs: Number(created),
    endedMs: ended === null ? undefined : Number(ended),
    sequence: Number(sequence),
    progress: JSON.parse(String(progress)) as JobRow["progress"],
  } as JobRow;
}

/** Selects objects of a bucket by prefix. */
export interface ItemQuery {
  readonly bucketId: number;
  readonly isVersioned: boolean;
  readonly spec: Pick<JobSpec, "operation" | "prefix" | "versions" | "filter" | "pointMs">;
  readonly sequence: number;
  readonly position: JobPosition;
  readonly itemsMax: number;
}

/** A page of objects. `changed` has keys that were written after the job began, which rewinding leaves alone. */
export interface ItemPage {
  readonly items: JobItem[];
  readonly changed: string[];
  readonly position: JobPosition;
  readonly isLast: boolean;
}

interface Row {
  key: Uint8Array;
  seq: number;
  version: string;
  size: number;
  etag: string;
  modified: number;
  class: string;
  tags: string | null;
  blob: number | null;
  detail: string;
  marker: number;
  live: number;
}

const KEYS_AT_ONCE = 2_000;

/** Reads a page of objects: versions that were committed before the job began. */
export function listJobItems(index: IndexConnection, query: ItemQuery): ItemPage {
  return new ItemReader(index, query).read();
}

/** The version of one key that a job on named keys means; `undefined` if it saw none. */
export function findJobItem(
  index: IndexConnection,
  bucketId: number,
  key: Uint8Array,
  version: string | undefined,
  sequence: number,
): JobItem | undefined {
  const rows = readVersions(index, bucketId, key, sequence, version);
  const row = rows[0];
  return row === undefined || row.marker === 1 ? undefined : toItem(row, version !== undefined);
}

class ItemReader {
  readonly #index: IndexConnection;
  readonly #query: ItemQuery;
  readonly #items: JobItem[] = [];
  readonly #changed: string[] = [];

  constructor(index: IndexConnection, query: ItemQuery) {
    this.#index = index;
    this.#query = query;
  }

  read(): ItemPage {
    const { spec, position, itemsMax, isVersioned } = this.#query;
    if (!isVersioned && spec.operation !== "rewind") return this.#readLive();
    const prefix = Buffer.from(spec.prefix);
    const end = findEndOfPrefix(prefix);
    let at = position;
    for (let keys = 0; keys < KEYS_AT_ONCE && this.#items.length < itemsMax; keys += 1) {
      const key = this.#findKey(at, prefix, end);
      if (key === undefined) return this.#build(at, true);
      at = this.#readKey(key, at);
    }
    return this.#build(at, false);
  }

  // Without versions there is one row for each key, and one query for all of them.
  #readLive(): ItemPage {
    const { bucketId, spec, position, sequence, itemsMax } = this.#query;
    const prefix = Buffer.from(spec.prefix);
    const { key } = position;
    const from = key === undefined ? prefix : Buffer.concat([Buffer.from(key, "base64"), ZERO]);
    const rows = this.#index
      .sql(
        `select ${ITEM_COLUMNS}, 0 as marker, 1 as live from current ` +
          "where bucket = ?1 and key >= ?2 and (?3 is null or key < ?3) order by key limit ?4",
      )
      .all(bucketId, from, findEndOfPrefix(prefix) ?? null, itemsMax) as unknown as Row[];
    for (const row of rows) if (row.seq <= sequence) this.#add(row, spec.versions === "all");
    const last = rows.at(-1);
    const isLast = rows.length < itemsMax;
    if (last === undefined) return this.#build(position, isLast);
    return this.#build({ key: Buffer.from(last.key).toString("base64") }, isLast);
  }

  #build(position: JobPosition, isLast: boolean): ItemPage {
    return { items: this.#items, changed: this.#changed, position, isLast };
  }

  // The rest of the versions of a key first, if the page before ended within it.
  #findKey({ key, seq }: JobPosition, prefix: Buffer, end: Buffer | undefined): Buffer | undefined {
    const { bucketId, isVersioned } = this.#query;
    if (key !== undefined && seq !== undefined) return Buffer.from(key, "base64");
    const from = key === undefined ? prefix : Buffer.concat([Buffer.from(key, "base64"), ZERO]);
    const tables = isVersioned ? ["current", "versions"] : ["current"];
    const found = tables.flatMap((table) => {
      const row = this.#index
        .sql(`select key from ${table} where bucket = ? and key >= ? order by key limit 1`)
        .get(bucketId, from);
      return row === undefined ? [] : [viewBytes(row["key"] as Uint8Array)];
    });
    const [next] = found.toSorted((a, b) => Buffer.compare(a, b));
    if (next === undefined || (end !== undefined && Buffer.compare(next, end) >= 0))
      return undefined;
    return Buffer.from(next);
  }

  #readKey(key: Buffer, at: JobPosition): JobPosition {
    const { bucketId, sequence, spec, itemsMax } = this.#query;
    const name = key.toString("base64");
    if (spec.operation === "rewind") {
      this.#rewind(key);
      return { key: name };
    }
    if (spec.versions === "live") {
      const [row] = readVersions(this.#index, bucketId, key, sequence);
      const isNamed = row?.live === 0 || spec.operation === "replicate";
      if (row !== undefined && this.#takes(row)) this.#add(row, isNamed);
      return { key: name };
    }
    // The oldest first, so that copies have the same order.
    const after = at.seq ?? 0;
    const rows = readVersions(this.#index, bucketId, key, sequence, undefined, after, itemsMax);
    for (const row of rows) {
      if (spec.operation === "delete" || this.#takes(row)) this.#add(row, true);
    }
    const last = rows.at(-1);
    return last !== undefined && rows.length === itemsMax
      ? { key: name, seq: last.seq }
      : { key: name };
  }

  #rewind(key: Buffer): void {
    const { bucketId, sequence, spec } = this.#query;
    const [newest] = readVersions(this.#index, bucketId, key, Number.MAX_SAFE_INTEGER);
    if (newest === undefined) return;
    if (newest.seq > sequence) {
      this.#changed.push(decodeKey(key));
      return;
    }
    const then = readAt(this.#index, bucketId, key, spec.pointMs ?? 0);
    if (then === undefined || then.marker === 1) {
      if (newest.marker === 0) this.#add(newest, false, "remove");
    } else if (!isSame(then, newest)) {
      this.#add(then, true, "restore");
    }
  }

  // Delete markers are replicated, too.
  #takes({ marker }: Row): boolean {
    return marker === 0 || this.#query.spec.operation === "replicate";
  }

  #add(row: Row, isNamed: boolean, rewind?: JobItem["rewind"]): void {
    if (matchesFilter(row, this.#query.spec.filter)) this.#items.push(toItem(row, isNamed, rewind));
  }
}

// A version that was put on top by rewinding shares its bytes with the one that it restores.
function isSame(a: Row, b: Row): boolean {
  return a.seq === b.seq || (a.blob === b.blob && a.detail === b.detail && a.tags === b.tags);
}

const ZERO = Buffer.alloc(1);

function toItem(row: Row, isNamed: boolean, rewind?: JobItem["rewind"]): JobItem {
  return {
    key: decodeKey(row.key),
    ...(isNamed ? { version: row.version } : {}),
    seen: row.version,
    etag: row.etag,
    bytes: row.size,
    storageClass: row.class,
    ...(rewind === undefined ? {} : { rewind }),
  };
}

// The newest version, the one with an id, or those behind a sequence number from the oldest on.
function readVersions(
  index: IndexConnection,
  bucketId: number,
  key: Uint8Array,
  sequence: number,
  version?: string,
  after?: number,
  rowsMax = 1,
): Row[] {
  const order = after === undefined ? "desc" : "";
  return index
    .sql(
      `select * from (select ${ITEM_COLUMNS}, 0 as marker, 1 as live from current where bucket = ?1 and key = ?2 ` +
        `union all select ${ITEM_COLUMNS}, marker, 0 as live from versions where bucket = ?1 and key = ?2) ` +
        `where seq <= ?3 and (?4 is null or version = ?4) and seq > ?5 order by seq ${order} limit ?6`,
    )
    .all(bucketId, key, sequence, version ?? null, after ?? 0, rowsMax) as unknown as Row[];
}

function readAt(
  index: IndexConnection,
  bucketId: number,
  key: Uint8Array,
  pointMs: number,
): Row | undefined {
  return index
    .sql(
      `select * from (select ${ITEM_COLUMNS}, 0 as marker, 1 as live from current where bucket = ?1 and key = ?2 ` +
        `union all select ${ITEM_COLUMNS}, marker, 0 as live from versions where bucket = ?1 and key = ?2) ` +
        "where modified <= ?3 order by seq desc limit 1",
    )
    .get(bucketId, key, pointMs) as unknown as Row | undefined;
}

function matchesFilter(row: Row, filter: JobFilter): boolean {
  const { createdAfterMs, createdBeforeMs, sizeMin, sizeMax, suffix, tags, storageClass } = filter;
  if (createdAfterMs !== undefined && row.modified <= createdAfterMs) return false;
  if (createdBeforeMs !== undefined && row.modified >= createdBeforeMs) return false;
  if (sizeMin !== undefined && row.size < sizeMin) return false;
  if (sizeMax !== undefined && row.size > sizeMax) return false;
  if (storageClass !== undefined && row.class !== storageClass) return false;
  if (
    suffix !== undefined &&
    !viewBytes(row.key).subarray(-Buffer.byteLength(suffix)).equals(Buffer.from(suffix))
  )
    return false;
  if (tags === undefined) return true;
  const own = row.tags === null ? {} : (JSON.parse(row.tags) as Record<string, string>);
  return Object.entries(tags).every(([name, value]) => own[name] === value);
}
