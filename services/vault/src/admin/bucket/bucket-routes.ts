// Buckets in the admin API: list, create, describe, delete.
import { PlatformError } from "@platform/kernel/errors";
import {
  type ApiRoute,
  defineRoute,
  nextCursor,
  pageQuery,
  readPage,
  NO_BODY,
} from "@platform/kernel/http";
import { z } from "zod";
import type { Bucket } from "../../model/bucket.ts";
import type { BucketSettingKind } from "../../model/bucket-settings.ts";
import type { Store } from "../../object-store.ts";
import type { ObjectApi } from "../../s3/context.ts";
import { bucketParams, BUCKET_PROBLEMS, BUCKET_TAG } from "./bucket-schema.ts";
import { type ConsoleOperations, PLACEHOLDER, type SentRequest } from "./console-operations.ts";

const createBody = z.strictObject({
  name: z.string().min(1).max(63),
  object_lock: z.boolean().default(false).describe("Enables versioning as well, for good."),
});
const count = z.int().min(0);
const bucketAnswer = z.object({
  name: z.string(),
  created_at: z.string(),
  region: z.string(),
  versioning: z.enum(["Unset", "Enabled", "Suspended"]),
  object_lock: z.boolean(),
  has_public_policy: z.boolean().describe("True if the policy allows everyone something."),
  settings: z.array(z.string()).describe("Names of the settings that are set."),
  objects: count,
  versions: count,
  delete_markers: count,
  bytes: count.describe("Bytes of all versions."),
  uploads: count.describe("Multipart uploads in progress."),
  upload_bytes: count,
  quota: z.object({ max_bytes: count.nullable(), max_objects: count.nullable() }).nullable(),
});
type BucketAnswer = z.input<typeof bucketAnswer>;

const listQuery = pageQuery.extend({
  detail: z
    .enum(["", "true", "false"])
    .transform((text) => text !== "false")
    .default(false)
    .describe("A page of descriptions instead of all names."),
});

export function createBucketRoutes(operations: ConsoleOperations, api: ObjectApi): ApiRoute[] {
  return [
    createListRoute(operations, api),
    createCreateRoute(operations, api.store),
    defineRoute({
      method: "GET",
      path: "/api/v1/buckets/{bucket}",
      summary: "A bucket with its usage",
      description: "Requires the permission s3:ListBucket.",
      tag: BUCKET_TAG,
      access: "guarded",
      params: bucketParams,
      answer: bucketAnswer,
      problems: BUCKET_PROBLEMS,
      handle: (request) =>
        operations.perform(
          request,
          { method: "HEAD", bucket: request.params.bucket },
          async ({ bucket }) => describeBucket(api, bucket!),
        ),
    }),
    defineRoute({
      method: "DELETE",
      path: "/api/v1/buckets/{bucket}",
      summary: "Delete an empty bucket",
      tag: BUCKET_TAG,
      access: "guarded",
      params: bucketParams,
      problems: { ...BUCKET_PROBLEMS, 409: "The bucket is not empty." },
      answer: NO_BODY,
      handle: async (request) => {
        await operations.run(request, { method: "DELETE", bucket: request.params.bucket });
      },
    }),
  ];
}

function createListRoute(operations: ConsoleOperations, api: ObjectApi): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/api/v1/buckets",
    summary: "Buckets: all names, or a page with usage",
    description:
      "Callers without the permission s3:ListAllMyBuckets see the buckets that they may list.",
    tag: BUCKET_TAG,
    access: "guarded",
    query: listQuery,
    answer: z.union([
      z.array(z.string()),
      z.object({ items: z.array(bucketAnswer), next_cursor: nextCursor }),
    ]),
    handle: async (request) => {
      const buckets = await listVisible(operations, api.store, request);
      const { query } = request;
      if (!query.detail) return buckets.map((bucket) => bucket.name);
      return readPage(query, {
        key: z.string(),
        keyOf: (bucket: BucketAnswer) => bucket.name,
        read: async (length, after = "") =>
          buckets
            .filter(({ name }) => name > after)
            .slice(0, length)
            .map((bucket) => describeBucket(api, bucket)),
      });
    },
  });
}

function createCreateRoute(operations: ConsoleOperations, store: Store): ApiRoute {
  return defineRoute({
    method: "POST",
    path: "/api/v1/buckets",
    summary: "Make a bucket",
    tag: BUCKET_TAG,
    access: "guarded",
    authorize: operations.createCheck(() => [
      {
        method: "PUT",
        bucket: PLACEHOLDER,
        unknown: { resource: "bucket", values: ["s3:locationconstraint"] },
      },
    ]),
    body: createBody,
    status: 201,
    problems: { 409: "The bucket exists." },
    answer: z.object({ name: z.string() }),
    handle: async (request) => {
      const { name, object_lock: hasLock } = request.body;
      const existed = store.buckets.find(name) !== undefined;
      const fields = hasLock ? [["x-amz-bucket-object-lock-enabled", "true"] as const] : [];
      await operations.run(request, { method: "PUT", bucket: name, fields });
      // S3 answers success to its owner.
      if (existed) throw new PlatformError("conflict", `The bucket ${name} exists.`);
      return { name };
    },
  });
}

async function listVisible(
  operations: ConsoleOperations,
  store: Store,
  request: SentRequest,
): Promise<readonly Bucket[]> {
  const buckets = store.buckets.list();
  if (await operations.isAllowed(request, { method: "GET", bucket: "" })) return buckets;
  const visible: Bucket[] = [];
  for (const bucket of buckets) {
    if (await operations.isAllowed(request, { method: "HEAD", bucket: bucket.name })) {
      visible.push(bucket);
    }
  }
  return visible;
}

function describeBucket({ store, authorizer }: ObjectApi, bucket: Bucket): BucketAnswer {
  const usage = store.readUsage(bucket.name);
  const { quota, ...settings } = bucket.settings;
  return {
    name: bucket.name,
    created_at: new Date(bucket.createdMs).toISOString(),
    region: bucket.region,
    versioning: bucket.versioning,
    object_lock: bucket.objectLockEnabled,
    has_public_policy: authorizer.getBucketPolicy(bucket)?.isPublic ?? false,
    settings: (Object.keys(settings) as BucketSettingKind[]).map(nameSetting).sort(),
    objects: usage.objects,
    versions: usage.versions,
    delete_markers: usage.deleteMarkers,
    bytes: usage.bytes,
    uploads: usage.uploads,
    upload_bytes: usage.uploadBytes,
    quota:
      quota === undefined
        ? null
        : { max_bytes: quota.bytesMax ?? null, max_objects: quota.objectsMax ?? null },
  };
}

/** The name of a setting in paths, where it differs. */
const SETTING_NAMES: Partial<Record<BucketSettingKind, string>> = {
  coldTier: "cold-tier",
  notification: "events",
  objectLock: "lock",
  tagging: "tags",
};

function nameSetting(kind: BucketSettingKind): string {
  return SETTING_NAMES[kind] ?? kind;
}
