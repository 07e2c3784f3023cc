// The table of queries that reader threads run.
import { listCandidates } from "./lifecycle-candidates.ts";
import { listGeoMarks } from "./list-geo-marks.ts";
import { listObjectParts, listUploads } from "./list-uploads.ts";
import { listObjects } from "./list-objects.ts";
import { findJobItem, listJobItems, listJobLines, listJobs } from "./list-jobs.ts";
import { countTasks, listDeadTasks } from "./list-tasks.ts";
import { listVersions } from "./list-versions.ts";
import type { IndexConnection } from "../index/schema.ts";

/** The queries by name. Each reads a bounded number of rows of the newest snapshot. */
const READER_QUERIES = {
  listObjects,
  listVersions,
  listUploads,
  listObjectParts,
  listCandidates,
  countTasks,
  listDeadTasks,
  listJobs,
  listJobLines,
  listJobItems,
  findJobItem,
  listGeoMarks,
};

type Queries = typeof READER_QUERIES;

/** The names of queries. */
export type QueryName = keyof Queries;

type Tail<T> = T extends [unknown, ...infer Rest] ? Rest : never;

/** The arguments of a query. */
export type QueryArguments<Name extends QueryName> = Tail<Parameters<Queries[Name]>>;

/** The result of a query. */
export type QueryResult<Name extends QueryName> = ReturnType<Queries[Name]>;

/** Runs a query. */
export function runQuery(index: IndexConnection, name: QueryName, values: unknown[]): unknown {
  const query = READER_QUERIES[name] as (index: IndexConnection, ...values: unknown[]) => unknown;
  return query(index, ...values);
}
