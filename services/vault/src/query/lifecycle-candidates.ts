// Finds candidates for lifecycle rules in the order of time, page by page.
import { decodeKey } from "../index/records.ts";
import type { IndexConnection } from "../index/schema.ts";

/** Sources: live objects by age, older versions by the time of their replacement, uploads by their start. */
export type CandidateKind = "current" | "noncurrent" | "marker" | "upload";

/** The query: rows of a bucket that are older than `beforeMs`, after a position. */
export interface CandidateQuery {
  kind: CandidateKind;
  bucketId: number;
  beforeMs: number;
  after?: CandidatePosition;
  max: number;
}

/** A position in the order of time. */
export interface CandidatePosition {
  timeMs: number;
  key: string;
  seq: number;
}

/** A row that may be due. */
export interface Candidate extends CandidatePosition {
  versionId: string;
  sizeBytes: number;
  tags: Readonly<Record<string, string>>;
  storageClass: string;
  /** Number of newer noncurrent versions of the key. */
  newerVersions: number;
}

const SOURCES: Record<CandidateKind, { from: string; time: string; seq: string; columns: string }> =
  {
    current: {
      from: "current where bucket = ?",
      time: "modified",
      seq: "seq",
      columns: "version, size, tags, class",
    },
    noncurrent: {
      from: "versions where bucket = ? and noncurrent_since is not null",
      time: "noncurrent_since",
      seq: "seq",
      columns: "version, size, tags, class",
    },
    marker: {
      from: "versions where bucket = ? and noncurrent_since is null",
      time: "modified",
      seq: "seq",
      columns: "version, size, tags, class",
    },
    upload: {
      from: "uploads where bucket = ? and completed is null",
      time: "created",
      seq: "id",
      columns: "upload_id as version, 0 as size, null as tags, '' as class",
    },
  };

/** A page of candidates, oldest first. */
export function listCandidates(index: IndexConnection, query: CandidateQuery): Candidate[] {
  const { from, time, seq, columns } = SOURCES[query.kind];
  const after = query.after ?? { timeMs: -1, key: "", seq: 0 };
  const rows = index
    .sql(
      `select key, ${seq} as seq, ${time} as time, ${columns} from ${from} and ${time} < ? ` +
        `and (${time}, key, ${seq}) > (?, ?, ?) order by ${time}, key, ${seq} limit ?`,
    )
    .all(
      query.bucketId,
      query.beforeMs,
      after.timeMs,
      Buffer.from(after.key),
      after.seq,
      query.max,
    );
  return rows.map((row) => {
    const key = row["key"] as Uint8Array;
    const candidate = {
      timeMs: Number(row["time"]),
      key: decodeKey(key),
      seq: Number(row["seq"]),
      versionId: String(row["version"]),
      sizeBytes: Number(row["size"]),
      tags: row["tags"] === null ? {} : (JSON.parse(String(row["tags"])) as Record<string, string>),
      storageClass: String(row["class"]),
      newerVersions: 0,
    };
    if (query.kind === "noncurrent" || query.kind === "marker") {
      candidate.newerVersions = countOthers(index, query, key, candidate.seq);
    }
    return candidate;
  });
}

// Counts the newer versions of a noncurrent version, or all other versions beside a marker, up to a few hundred.
function countOthers(
  index: IndexConnection,
  { bucketId, kind }: CandidateQuery,
  key: Uint8Array,
  seq: number,
): number {
  const comparison = kind === "marker" ? "<>" : ">";
  const row = index
    .sql(
      "select count(*) n from (select 1 from versions where bucket = ? and key = ? and " +
        `seq ${comparison} ? and (noncurrent_since is not null) limit 1000)`,
    )
    .get(bucketId, key, seq);
  return Number(row?.["n"]);
}
