// Checks a whole index: the tree of its pages, its schema, each row, and all references.
import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { BlobRow, VersionRow } from "./records.ts";
import {
  FORMAT_VERSION,
  makeTables,
  openIndexReader,
  VERSION_COLUMNS,
  type IndexConnection,
} from "./schema.ts";
import { readAllUsage, USAGE_COLUMNS, writeCountUsage } from "./usage-rows.ts";
import {
  matchesSeal,
  type RemoteBlobRow,
  sealBlob,
  sealBucket,
  sealPart,
  sealRemote,
  sealRemoteBlob,
  sealVector,
  sealVersion,
  type VectorRow,
} from "./seal.ts";

/** The result. Without findings the index is intact. */
export interface IndexInspection {
  findings: string[];
  rows: number;
}

/** Limit of reported findings; a single one is enough to distrust the rest. */
const FINDINGS_MAX = 20;

/** Bytes of an index with its WAL; 0 if it is missing. */
export function measureIndex(path: string): number {
  const measure = (name: string) => statSync(name, { throwIfNoEntry: false })?.size ?? 0;
  return measure(path) + measure(`${path}-wal`);
}

/** Inspects the index at `path` without changing it. */
export function inspectIndex(path: string): IndexInspection {
  const inspection: IndexInspection = { findings: [], rows: 0 };
  const note = (finding: string) => {
    if (inspection.findings.length < FINDINGS_MAX) inspection.findings.push(finding);
  };
  let index: IndexConnection | undefined;
  try {
    index = openIndexReader(path);
    inspectPages(index, note);
    if (inspection.findings.length > 0) return inspection;
    const format = inspectSchema(index, note);
    if (inspection.findings.length > 0) return inspection;
    inspection.rows = inspectRows(index, format, note);
    inspectReferences(index, format, note);
    inspectCounts(index, format, note);
  } catch (error) {
    note(error instanceof Error ? error.message : String(error));
  } finally {
    index?.close();
  }
  return inspection;
}

function inspectPages(index: IndexConnection, note: (finding: string) => void): void {
  for (const row of index.sql(`pragma integrity_check(${FINDINGS_MAX})`).all()) {
    const text = String(row["integrity_check"]);
    if (text !== "ok") note(text.replaceAll(/\s+/g, " "));
  }
}

function inspectSchema(index: IndexConnection, note: (finding: string) => void): number {
  const format = Number(index.sql("pragma user_version").get()?.["user_version"]);
  if (format < 1 || format > FORMAT_VERSION) {
    note(`its format is ${format}, this program reads 1 to ${FORMAT_VERSION}`);
    return format;
  }
  const model = new DatabaseSync(":memory:");
  try {
    makeTables(model, 0, format);
    const list = "select name, sql from sqlite_schema where sql is not null order by name";
    const wanted = new Map(
      model
        .prepare(list)
        .all()
        .map((row) => [row["name"], row["sql"]]),
    );
    const found = index.sql(list).all();
    for (const { name, sql } of found) {
      if (wanted.get(name) !== sql) note(`the definition of ${String(name)} is damaged`);
      wanted.delete(name);
    }
    for (const name of wanted.keys()) note(`the table or index ${String(name)} is missing`);
  } finally {
    model.close();
  }
  return format;
}

function inspectRows(
  index: IndexConnection,
  format: number,
  note: (finding: string) => void,
): number {
  const seal = format < 2 ? "null as seal" : "seal";
  const columns = VERSION_COLUMNS.replace(/seal$/, seal);
  let rows = 0;
  let lastSequence = 0;
  const judge: Judge = (table, what, row, computed) => {
    rows += 1;
    if (matchesSeal(row.seal as number | null, computed)) return;
    note(`a row of ${table} is damaged (${String(what)})`);
  };
  for (const table of ["current", "versions"]) {
    const marker = table === "current" ? "0 as marker" : "marker";
    for (const found of index.sql(`select ${columns}, ${marker} from ${table}`).iterate()) {
      const row = found as unknown as VersionRow;
      lastSequence = Math.max(lastSequence, row.seq);
      const key = Buffer.from(row.key).toString("utf8");
      judge(table, `bucket ${row.bucket}, key ${key}`, row, sealVersion(row));
      if ((row.marker === 1) !== (row.blob === null)) note(`a row of ${table} is damaged (${key})`);
    }
  }
  const blobs = `select id, kind, size, stored, segment, position, extent, cipher, data, ${seal} from blobs`;
  for (const found of index.sql(blobs).iterate()) {
    const row = found as unknown as BlobRow;
    judge("blobs", row.id.toString(16), row, sealBlob(row));
  }
  type Part = Parameters<typeof sealPart>[0] & { seal: number | null };
  const parts = [
    `select blob as owner, start, number, part as blob, size, etag, modified, checksum, ${seal} from blob_parts`,
    `select upload as owner, 0 as start, number, blob, size, etag, modified, checksum, ${seal} from parts`,
  ];
  for (const text of parts) {
    for (const found of index.sql(text).iterate()) {
      const row = found as unknown as Part;
      judge("parts", `${row.owner}/${row.number}`, row, sealPart(row));
    }
  }
  for (const row of index.sql(`select name, document, ${seal} from buckets`).iterate()) {
    const name = String(row["name"]);
    judge("buckets", name, row, sealBucket(name, String(row["document"])));
  }
  if (format >= 4) {
    for (const found of index.sql("select * from vectors").iterate()) {
      const row = found as unknown as VectorRow & { seal: number };
      lastSequence = Math.max(lastSequence, row.id);
      judge("vectors", row.id, row, sealVector(row));
    }
  }
  if (format >= 6) inspectRemotes(index, judge);
  const sequence = readMeta(index, "sequence");
  if (sequence < lastSequence) note(`the sequence is at ${sequence}, below ${lastSequence}`);
  return rows;
}

type Judge = (table: string, what: unknown, row: { seal?: unknown }, computed: number) => void;

function inspectRemotes(index: IndexConnection, judge: Judge): void {
  for (const found of index.sql("select * from remote_blobs").iterate()) {
    const row = found as unknown as RemoteBlobRow & { seal: number };
    judge("remote_blobs", row.blob.toString(16), row, sealRemoteBlob(row));
  }
  for (const row of index.sql("select name, document, seal from remotes").iterate()) {
    const name = String(row["name"]);
    judge("remotes", name, row, sealRemote(name, String(row["document"])));
  }
}

/** Each query selects violations, with a name in the first column. */
const REFERENCES: readonly (readonly [string, string])[] = [
  [
    "an object refers to a blob that is missing",
    "select blob from (select blob from current union all select blob from versions) " +
      "where blob is not null and blob not in (select id from blobs)",
  ],
  [
    "a part refers to a blob that is missing",
    "select part from (select part from blob_parts union all select blob as part from parts) " +
      "where part not in (select id from blobs)",
  ],
  [
    "an object is in no bucket",
    "select bucket from (select bucket from current union all select bucket from versions) " +
      "where bucket not in (select id from buckets)",
  ],
  [
    "the bytes of a segment are counted wrongly",
    "select s.id from segments s left join " +
      "(select segment, sum(extent) as n from blobs where segment is not null group by segment) b " +
      "on b.segment = s.id where s.live <> coalesce(b.n, 0)",
  ],
  [
    "a segment is unknown",
    "select segment from blobs where segment is not null and segment not in (select id from segments)",
  ],
  ["a blob is garbage and in use", "select blob from garbage where blob in (select id from blobs)"],
];

const COUNTED_REFERENCES =
  "select blob from current union all select blob from versions union all " +
  "select part from blob_parts union all select blob from parts";

/** The references of blobs, with the local copies of bodies in remotes since format 6. */
function countReferences(format: number): readonly [string, string] {
  const more = format >= 6 ? " union all select copy from remote_blobs" : "";
  return [
    "the references of a blob are counted wrongly",
    `select b.id from blobs b left join (select blob, count(*) as n from (${COUNTED_REFERENCES}${more}) ` +
      "group by blob) r on r.blob = b.id where b.refs <> coalesce(r.n, 0)",
  ];
}

const REFERENCES_OF_FORMAT_6: readonly (readonly [string, string])[] = [
  [
    "a body in a remote has no place",
    "select id from blobs where kind = 'remote' and id not in (select blob from remote_blobs)",
  ],
  [
    "a place in a remote belongs to a blob that is missing",
    "select blob from remote_blobs where blob not in (select id from blobs where kind = 'remote')",
  ],
];

const REFERENCES_OF_FORMAT_4: readonly (readonly [string, string])[] = [
  [
    "a vector belongs to a version that is missing",
    "select v.id from vectors v where not exists (select 1 from current c where " +
      "c.bucket = v.bucket and c.key = v.key and c.version = v.version) and not exists (select 1 from versions o " +
      "where o.bucket = v.bucket and o.key = v.key and o.version = v.version and o.marker = 0)",
  ],
];

function inspectReferences(
  index: IndexConnection,
  format: number,
  note: (finding: string) => void,
): void {
  const all = [
    ...REFERENCES,
    countReferences(format),
    ...(format >= 4 ? REFERENCES_OF_FORMAT_4 : []),
    ...(format >= 6 ? REFERENCES_OF_FORMAT_6 : []),
  ];
  for (const [finding, text] of all) {
    const row = index.sql(`${text} limit 1`).get();
    if (row !== undefined) note(`${finding} (${String(Object.values(row)[0])})`);
  }
}

function inspectCounts(
  index: IndexConnection,
  format: number,
  note: (finding: string) => void,
): void {
  if (format >= 3) {
    inspectUsage(index, format, note);
    return;
  }
  const objects = Number(index.sql("select count(*) as n from current").get()?.["n"]);
  const counted = readMeta(index, "objects");
  if (objects !== counted) note(`there are ${objects} objects, and ${counted} were counted`);
}

function inspectUsage(
  index: IndexConnection,
  format: number,
  note: (finding: string) => void,
): void {
  readAllUsage(index);
  const wrong =
    `with counted as materialized (${writeCountUsage(format)}), kept as (select bucket, ${USAGE_COLUMNS} from usage) ` +
    "select * from (select * from kept except select * from counted) union all " +
    "select * from (select * from counted except select * from kept) limit 1";
  const row = index.sql(wrong).get();
  if (row !== undefined) note(`the usage of bucket ${String(row["bucket"])} is counted wrongly`);
}

function readMeta(index: IndexConnection, name: string): number {
  return Number(index.sql("select value from meta where name = ?").get(name)?.["value"] ?? 0);
}
