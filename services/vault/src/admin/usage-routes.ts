// Usage and quotas of buckets in the admin API.
import { PlatformError } from "@platform/kernel/errors";
import {
  nextCursor,
  type ApiRoute,
  createEtag,
  defineRoute,
  type HeaderReader,
  pageQuery,
  readPage,
  requirePreconditions,
  NO_BODY,
} from "@platform/kernel/http";
import { z } from "zod";
import type { Bucket } from "../model/bucket.ts";
import type { BucketQuota } from "../model/usage.ts";
import type { Store } from "../object-store.ts";
import { asProblem } from "./problem.ts";

const TAG = "Usage";
const PROBLEMS = { 404: "The bucket does not exist." };
const CHANGE_PROBLEMS = { ...PROBLEMS, 412: "The quota has changed." };
const params = z.object({ bucket: z.string().min(1).max(63).describe("Name of the bucket.") });
const limit = z.int().min(1);

const quotaAnswer = z.object({
  max_bytes: limit
    .nullable()
    .describe(
      "Limit of the bytes of all versions and of the parts of uploads in progress; null for no limit.",
    ),
  max_objects: limit
    .nullable()
    .describe("Limit of versions, without delete markers; null for no limit."),
});
const quotaBody = z
  .strictObject({
    max_bytes: limit.optional().describe("Bytes of all versions and of parts of uploads."),
    max_objects: limit
      .optional()
      .describe("Versions, without delete markers: objects where a bucket has no versioning."),
  })
  .refine((quota) => Object.values(quota).some((value) => value !== undefined), {
    message: "max_bytes, max_objects or both are required",
  });
const count = z.int().min(0);
const usageAnswer = z.object({
  bucket: z.string(),
  objects: count.describe("Live objects."),
  versions: count.describe("Live objects and noncurrent versions, without delete markers."),
  delete_markers: count,
  bytes: count.describe("Bytes of all versions."),
  uploads: count.describe("Multipart uploads in progress."),
  upload_bytes: count.describe("Bytes of their parts."),
  quota: quotaAnswer.nullable(),
});
const usageListAnswer = z.object({
  items: z.array(usageAnswer),
  next_cursor: nextCursor,
  total: z.object({ buckets: count, objects: count, bytes: count }),
});

/** Routes that read usage, and read, set and remove quotas. */
export function createUsageRoutes(store: Store): ApiRoute[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/usage",
      summary: "Usage of all buckets, by name",
      description: "`total.bytes` includes the parts of uploads in progress.",
      tag: TAG,
      query: pageQuery,
      answer: usageListAnswer,
      handle: async ({ query }) => {
        const page = await readPage(query, {
          key: z.string(),
          keyOf: (usage: z.input<typeof usageAnswer>) => usage.bucket,
          read: async (length, after) => describePage(store, length, after),
        });
        const { buckets, objects, storageBytes } = store.readStats();
        return { ...page, total: { buckets, objects, bytes: storageBytes } };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/api/v1/buckets/{bucket}/usage",
      summary: "Usage of a bucket",
      description: "As of the last acknowledged write.",
      tag: TAG,
      params,
      answer: usageAnswer,
      problems: PROBLEMS,
      handle: ({ params: { bucket } }) =>
        asProblem(Promise.resolve().then(() => describeUsage(store, bucket))),
    }),
    defineRoute({
      method: "GET",
      path: "/api/v1/buckets/{bucket}/quota",
      summary: "Quota of a bucket",
      description: "The answer has an ETag for If-Match.",
      tag: TAG,
      params,
      answer: quotaAnswer,
      problems: { 404: "The bucket does not exist or has no quota." },
      handle: async ({ params: { bucket }, answerHeaders }) => {
        const { quota } = (await readBucket(store, bucket)).settings;
        if (quota === undefined) throw new PlatformError("not_found", "The bucket has no quota.");
        answerHeaders.set("ETag", tagOf(quota)!);
        return toDocument(quota);
      },
    }),
    defineRoute({
      method: "PUT",
      path: "/api/v1/buckets/{bucket}/quota",
      summary: "Set the quota of a bucket",
      description:
        "Replaces both limits. Writes that would exceed a limit are refused with 403 `QuotaExceeded`; data that is already " +
        "stored stays, and deletions always work. With If-Match, only if the quota still has this ETag; with " +
        "`If-None-Match: *`, only if there is none.",
      tag: TAG,
      params,
      body: quotaBody,
      answer: quotaAnswer,
      problems: CHANGE_PROBLEMS,
      handle: async ({ params: { bucket }, body, headers }) => {
        const quota: BucketQuota = {
          ...(body.max_bytes === undefined ? {} : { bytesMax: body.max_bytes }),
          ...(body.max_objects === undefined ? {} : { objectsMax: body.max_objects }),
        };
        const expected = await requireKnownQuota(store, bucket, headers);
        await asProblem(store.buckets.setSetting(bucket, "quota", quota, expected));
        return toDocument(quota);
      },
    }),
    defineRoute({
      method: "DELETE",
      path: "/api/v1/buckets/{bucket}/quota",
      summary: "Remove the quota of a bucket",
      description: "Succeeds where the bucket has none.",
      tag: TAG,
      params,
      problems: CHANGE_PROBLEMS,
      answer: NO_BODY,
      handle: async ({ params: { bucket }, headers }) => {
        const expected = await requireKnownQuota(store, bucket, headers);
        await asProblem(store.buckets.deleteSetting(bucket, "quota", expected));
      },
    }),
  ];
}

function describePage(store: Store, length: number, after = ""): z.input<typeof usageAnswer>[] {
  return store.buckets
    .list()
    .filter(({ name }) => name > after)
    .slice(0, length)
    .map(({ name }) => describeUsage(store, name));
}

function describeUsage(store: Store, bucket: string): z.input<typeof usageAnswer> {
  const { objects, versions, deleteMarkers, bytes, uploads, uploadBytes } = store.readUsage(bucket);
  return {
    bucket,
    objects,
    versions,
    delete_markers: deleteMarkers,
    bytes,
    uploads,
    upload_bytes: uploadBytes,
    quota: describeQuota(store.buckets.require(bucket).settings.quota),
  };
}

function describeQuota(quota: BucketQuota | undefined): z.input<typeof quotaAnswer> | null {
  return quota === undefined ? null : toDocument(quota);
}

function toDocument({
  bytesMax = null,
  objectsMax = null,
}: Partial<Record<keyof BucketQuota, number | null>>) {
  return { max_bytes: bytesMax, max_objects: objectsMax };
}

function tagOf(quota: BucketQuota | undefined): string | undefined {
  return quota === undefined ? undefined : createEtag(JSON.stringify(toDocument(quota)));
}

async function readBucket(store: Store, bucket: string): Promise<Bucket> {
  return asProblem(Promise.resolve().then(() => store.buckets.require(bucket)));
}

/** Checks the preconditions; the bucket as which the writer must still find it, undefined without one. */
async function requireKnownQuota(
  store: Store,
  name: string,
  headers: HeaderReader,
): Promise<Bucket | undefined> {
  if (headers.get("if-match") === null && headers.get("if-none-match") === null) return undefined;
  const bucket = await readBucket(store, name);
  requirePreconditions(headers, tagOf(bucket.settings.quota));
  return bucket;
}
