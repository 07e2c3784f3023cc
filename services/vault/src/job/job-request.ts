// Requests for jobs: their documents, and the checks before a job is queued.
import { z } from "zod";
import { isReservedBucket } from "../model/bucket.ts";
import { type JobManifest, type JobSpec, OBJECT_JOBS } from "../model/job.ts";
import type { StoredRequester } from "../model/requester.ts";
import { S3Error } from "../model/s3-error.ts";
import type { Store } from "../object-store.ts";
import type { ObjectGuests } from "../s3/context.ts";
import type { InnerOperations, Sender } from "../s3/inner-operations.ts";
import { jobFilterSchema, toJobFilter } from "../s3/job-filter.ts";
import { describeListing } from "./job-run.ts";

const KEYS_MAX = 10_000;
const TAGS_MAX = 10;
const RATE_MAX = 1_000_000;
const FAILURE_PERCENT = 50;

const bucketName = z.string().min(1).max(63);
const prefix = z.string().max(1_024);

/** A job in a request. */
export const jobBody = z.strictObject({
  operation: z.enum(OBJECT_JOBS),
  bucket: bucketName,
  prefix: prefix.optional().describe("Selects objects; empty for the whole bucket."),
  keys: z.array(z.string().min(1).max(1_024)).min(1).max(KEYS_MAX).optional(),
  manifest: z
    .strictObject({
      bucket: bucketName,
      key: z.string().min(1).max(1_024),
      format: z.enum(["csv", "ndjson"]),
    })
    .optional()
    .describe("An object with a line for each object: bucket,key[,version], or JSON."),
  versions: z.enum(["live", "all"]).default("live"),
  filter: jobFilterSchema.optional().describe("Of objects that are selected by prefix."),
  target_bucket: bucketName.optional().describe("Default: the same bucket."),
  target_prefix: prefix.default("").describe("Goes before the whole key."),
  tags: z
    .record(z.string().min(1).max(128), z.string().max(256))
    .refine((tags) => Object.keys(tags).length <= TAGS_MAX, `at most ${TAGS_MAX} tags`)
    .default({}),
  modules: z.array(z.string().min(1).max(192)).max(8).default([]),
  point: z.iso.datetime({ offset: true }).optional().describe("The moment to go back to."),
  rate: z.int().min(0).max(RATE_MAX).optional().describe("Objects per second; 0 is no limit."),
  dry_run: z.boolean().default(false),
  failure_threshold_percent: z
    .int()
    .min(0)
    .max(100)
    .default(FAILURE_PERCENT)
    .describe("The job stops above it, after 1 000 objects."),
  report: z
    .strictObject({
      bucket: bucketName,
      prefix: prefix.default(""),
      successes: z.boolean().default(false),
    })
    .optional()
    .describe("Default: failures, in the bucket system-jobs."),
});

type JobBody = z.output<typeof jobBody>;

/** The parts that checks use. */
export interface JobRequestParts {
  readonly store: Store;
  readonly guests: ObjectGuests;
  readonly operations: InnerOperations;
  readonly now: () => number;
}

/** Checks a request, and converts it. Throws the error of the first fault. */
export async function toJobSpec(
  parts: JobRequestParts,
  body: JobBody,
  sender: Sender,
  requester: StoredRequester,
): Promise<JobSpec> {
  const { store, guests, operations } = parts;
  checkSelection(body);
  checkBuckets(store, body);
  checkOperation(parts, body);
  const spec: JobSpec = {
    operation: body.operation,
    bucket: body.bucket,
    prefix: body.prefix ?? "",
    ...(body.keys === undefined ? {} : { keys: [...new Set(body.keys)] }),
    ...(body.manifest === undefined
      ? {}
      : { manifest: await pinManifest(operations, sender, body.manifest) }),
    versions: body.versions,
    filter: toJobFilter(body.filter),
    ...(body.target_bucket === undefined ? {} : { targetBucket: body.target_bucket }),
    targetPrefix: body.target_prefix,
    tags: body.tags,
    pins: body.operation === "pipeline" ? guests.pin(body.modules) : [],
    ...(body.point === undefined ? {} : { pointMs: Date.parse(body.point) }),
    isDryRun: body.dry_run,
    failurePercentMax: body.failure_threshold_percent,
    ...(body.report === undefined
      ? {}
      : { report: { bucket: body.report.bucket, prefix: body.report.prefix } }),
    reportsSuccesses: body.report?.successes ?? false,
    requester,
  };
  if (spec.keys === undefined && spec.manifest === undefined) {
    const call = { method: "GET", bucket: spec.bucket, query: describeListing(spec) };
    if (!(await operations.isAllowed(sender, call))) {
      throw new S3Error(
        "AccessDenied",
        "Selecting by prefix requires the right to list the bucket.",
      );
    }
  }
  return spec;
}

function checkSelection({
  prefix: own,
  keys,
  manifest,
  operation,
  versions,
  filter,
}: JobBody): void {
  const given = [own, keys, manifest].filter((one) => one !== undefined).length;
  if (given !== 1) {
    throw invalid("A job has exactly one of prefix, keys and manifest.");
  }
  if (own === undefined && filter !== undefined) {
    throw invalid("filter: applies to a selection by prefix.");
  }
  if (own === undefined && versions === "all") {
    throw invalid("versions: all applies to a selection by prefix; a manifest names versions.");
  }
  if (operation === "rewind" && (own === undefined || versions === "all" || filter !== undefined)) {
    throw invalid("rewind has a prefix, and neither versions nor a filter.");
  }
}

function checkBuckets(store: Store, body: JobBody): void {
  const names = [body.bucket, body.target_bucket, body.report?.bucket, body.manifest?.bucket];
  for (const name of names) {
    if (name === undefined) continue;
    if (isReservedBucket(name)) throw new S3Error("AccessDenied");
    store.buckets.require(name);
  }
}

function checkOperation({ store, now }: JobRequestParts, body: JobBody): void {
  const { operation, bucket, point, tags, modules } = body;
  const isSame = (body.target_bucket ?? bucket) === bucket;
  if ((operation === "copy" || operation === "pipeline") && isSame && body.target_prefix === "") {
    throw invalid("target_prefix: required for a target in the same bucket.");
  }
  if (operation === "tag" && Object.keys(tags).length === 0) throw invalid("tags: required.");
  if (operation === "pipeline" && modules.length === 0) throw invalid("modules: required.");
  if (operation === "replicate" && store.buckets.require(bucket).settings.replication === undefined)
    throw invalid("replicate: the bucket has no replication configuration.");
  if ((operation === "rewind") !== (point !== undefined)) {
    throw invalid(operation === "rewind" ? "point: required." : "point: only of rewind.");
  }
  if (point === undefined) return;
  if (Date.parse(point) >= now()) throw invalid("point: is not in the past.");
  if (store.buckets.require(bucket).versioning === "Unset") {
    throw invalid("rewind: the bucket has no versions.");
  }
}

async function pinManifest(
  operations: InnerOperations,
  sender: Sender,
  { bucket, key, format }: Omit<JobManifest, "etag" | "versionId">,
): Promise<JobManifest> {
  const { headers = [] } = await operations.run(sender, { method: "HEAD", bucket, key });
  const read = (wanted: string): string | undefined =>
    headers.find(([name]) => name.toLowerCase() === wanted)?.[1];
  const versionId = read("x-amz-version-id");
  const etag = (read("etag") ?? "").replaceAll('"', "");
  return { bucket, key, format, etag, ...(versionId === undefined ? {} : { versionId }) };
}

function invalid(reason: string): S3Error {
  return new S3Error("InvalidArgument", reason);
}
