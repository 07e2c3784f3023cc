// The rules of residency under which versions were written.
import type { ObjectDetail } from "../index/records.ts";
import type { IndexConnection } from "../index/schema.ts";
import type { GeoMark } from "../model/geo.ts";

const ROWS_MAX = 5_000;

/** The last row of a page. */
export interface MarkPosition {
  readonly bucket: number;
  readonly key: Uint8Array;
  readonly seq: number;
}

/** Marks of up to 5 000 rows of a table, each once, and where the next page begins; `undefined` after the last one. */
export function listGeoMarks(
  index: IndexConnection,
  table: "current" | "versions",
  after: MarkPosition | undefined,
): { marks: GeoMark[]; next: MarkPosition | undefined } {
  const rows = index
    .sql(
      `select bucket, key, seq, detail from ${table} where (bucket, key, seq) > (?, ?, ?) order by bucket, key, seq limit ?`,
    )
    .all(
      after?.bucket ?? -1,
      after?.key ?? new Uint8Array(),
      after?.seq ?? -1,
      ROWS_MAX,
    ) as unknown as (MarkPosition & { detail: string })[];
  const marks = new Map<string, GeoMark>();
  for (const { detail } of rows) {
    if (!detail.includes('"geo":')) continue;
    const { geo } = JSON.parse(detail) as ObjectDetail;
    if (geo !== undefined) marks.set(JSON.stringify(geo), geo);
  }
  const last = rows.length < ROWS_MAX ? undefined : rows.at(-1);
  const next =
    last === undefined ? undefined : { bucket: last.bucket, key: last.key, seq: last.seq };
  return { marks: [...marks.values()], next };
}
