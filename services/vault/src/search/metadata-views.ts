// The views of SQL on metadata: the rows of one bucket, with the columns that its users may see.
import type { SqlView } from "@platform/kernel/sql-child";
import { buildKeyRange } from "../index/key-range.ts";

/** A bucket, or a part of it. */
export interface ViewedBucket {
  readonly id: number;
  readonly name: string;
  /** Only keys that begin with it. */
  readonly prefix: string;
}

/** Columns of `objects`; `versions` has two more. Keys and version ids cannot hold anything but these expressions. */
const COLUMNS = `
  key,
  size,
  etag,
  content_type,
  strftime('%Y-%m-%dT%H:%M:%fZ', modified / 1000.0, 'unixepoch') as last_modified,
  version_id,
  storage_class,
  tags,
  metadata,
  prefix,
  case when instr(substr(key, length(prefix) + 2), '.') > 0
    then lower(substr(key, length(rtrim(key, replace(key, '.', ''))) + 1)) end as extension`;

// A key up to its last slash: all its other characters are removed from its end. The default of the content type is that of
// answers to GET.
const READ = `
  key, rtrim(key, replace(key, '/', '')) as prefix, size, etag, modified, version_id, storage_class, tags,
  case when marker then null else coalesce(detail ->> '$.headers.contentType', 'binary/octet-stream') end as content_type,
  coalesce(detail -> '$.metadata', '{}') as metadata`;

/** Returns the views `objects` (live objects) and `versions` (all versions and delete markers). */
export function createMetadataViews(bucket: ViewedBucket): SqlView[] {
  const name = `'${bucket.name.replaceAll("'", "''")}' as bucket`;
  const live = selectRows("current", "0", bucket);
  const older = selectRows("versions", "marker", bucket);
  return [
    { name: "objects", select: `select ${name}, ${COLUMNS} from (select ${READ} from (${live}))` },
    {
      name: "versions",
      select:
        `select ${name}, ${COLUMNS}, 1 as is_latest, 0 as is_delete_marker from (select ${READ} from (${live})) ` +
        `union all select ${name}, ${COLUMNS}, noncurrent_since is null, marker ` +
        `from (select ${READ}, noncurrent_since, marker from (${older}))`,
    },
  ];
}

function selectRows(
  table: "current" | "versions",
  marker: string,
  { id, prefix }: ViewedBucket,
): string {
  const range = buildKeyRange(prefix, undefined)!;
  const conditions = [`bucket = ${id}`];
  if (prefix !== "") conditions.push(`main.${table}.key >= ${quote(range.from)}`);
  if (range.to !== undefined) conditions.push(`main.${table}.key < ${quote(range.to)}`);
  const since = table === "versions" ? ", noncurrent_since" : "";
  return (
    `select cast(key as text) as key, size, etag, modified, version as version_id, class as storage_class, ` +
    `coalesce(tags, '{}') as tags, detail, ${marker} as marker${since} ` +
    `from main.${table} where ${conditions.join(" and ")}`
  );
}

function quote(bytes: Buffer): string {
  return `x'${bytes.toString("hex")}'`;
}
