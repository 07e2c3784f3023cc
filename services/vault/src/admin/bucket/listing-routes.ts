// Listings of objects, of versions and of uploads in progress in the admin API.
import {
  decodeCursor,
  encodeCursor,
  nextCursor,
  type ApiRoute,
  defineRoute,
} from "@platform/kernel/http";
import { z } from "zod";
import type { ListedObject, ListPosition } from "../../model/object.ts";
import type { ListedVersion } from "../../model/version.ts";
import type { OperationContext } from "../../s3/context.ts";
import { bucketParams, BUCKET_PROBLEMS, OBJECT_TAG } from "./bucket-schema.ts";
import type { ConsoleOperations } from "./console-operations.ts";

const PAGE_MAX = 1_000;
const CURSOR_CHARACTERS_MAX = 4_096;

const listQuery = z.object({
  prefix: z.string().max(1_024).default(""),
  delimiter: z
    .string()
    .max(1_024)
    .default("")
    .describe("Keys that contain it after the prefix are gathered in `prefixes`."),
  cursor: z
    .string()
    .max(CURSOR_CHARACTERS_MAX)
    .optional()
    .describe("`next_cursor` of the previous page."),
  limit: z
    .string()
    .regex(/^\d{1,4}$/)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= PAGE_MAX, "a whole number from 1 to 1000")
    .default(PAGE_MAX)
    .describe("Keys and prefixes on a page, 1 to 1 000."),
});
type ListQuery = z.output<typeof listQuery>;
const objectsQuery = listQuery.extend({
  versions: z
    .enum(["", "true", "false"])
    .transform((text) => text !== "false")
    .default(false)
    .describe("Lists all versions and delete markers, newest first."),
});

const objectAnswer = z.object({
  key: z.string(),
  size: z.int(),
  etag: z.string().describe("Without quotes; empty for delete markers."),
  modified_at: z.string(),
  storage_class: z.string(),
  version: z.string().optional(),
  is_latest: z.boolean().optional(),
  is_delete_marker: z.boolean().optional(),
  retention: z
    .object({ mode: z.enum(["GOVERNANCE", "COMPLIANCE"]), until: z.string() })
    .optional()
    .describe("Of a version that has one, for callers with the permission s3:GetObjectRetention."),
  legal_hold: z
    .literal(true)
    .optional()
    .describe("Of a version that is held, for callers with the permission s3:GetObjectLegalHold."),
});
const pageOf = <T extends z.ZodType>(item: T) =>
  z.object({
    items: z.array(item),
    prefixes: z.array(z.string()),
    next_cursor: nextCursor,
  });
const uploadAnswer = z.object({ upload_id: z.string(), key: z.string(), started_at: z.string() });

/** Position of a page: `after` of listings, with the version or the upload that it ends with. */
const positionSchema = z.object({
  value: z.string().max(1_024),
  isPrefix: z.boolean(),
  id: z.string().max(64).optional(),
});
type Position = z.output<typeof positionSchema>;

export function createListingRoutes(operations: ConsoleOperations): ApiRoute[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/buckets/{bucket}/objects",
      summary: "A page of objects, or of versions",
      description:
        "In the order of the keys' bytes. Requires s3:ListBucket or s3:ListBucketVersions.",
      tag: OBJECT_TAG,
      access: "guarded",
      params: bucketParams,
      query: objectsQuery,
      answer: pageOf(objectAnswer),
      problems: BUCKET_PROBLEMS,
      handle: (request) => {
        const { query, params } = request;
        const operation = query.versions ? { versions: "" } : { "list-type": "2" };
        const call = toCall(params.bucket, query, operation);
        const mayRead = (subresource: string) => async (key: string) =>
          operations.isAllowed(request, {
            method: "GET",
            bucket: params.bucket,
            key,
            query: { [subresource]: "" },
          });
        return operations.perform(request, call, async (context) => {
          if (!query.versions) return listObjects(context, query);
          return listVersions(context, query, mayRead("retention"), mayRead("legal-hold"));
        });
      },
    }),
    defineRoute({
      method: "GET",
      path: "/api/v1/buckets/{bucket}/uploads",
      summary: "A page of multipart uploads in progress",
      description: "By key, then by start. Requires s3:ListBucketMultipartUploads.",
      tag: OBJECT_TAG,
      access: "guarded",
      params: bucketParams,
      query: listQuery,
      answer: pageOf(uploadAnswer),
      problems: BUCKET_PROBLEMS,
      handle: (request) => {
        const { query, params } = request;
        const call = toCall(params.bucket, query, { uploads: "" });
        return operations.perform(request, call, (context) => listUploads(context, query));
      },
    }),
  ];
}

// Policies may ask for these parameters.
function toCall(bucket: string, query: ListQuery, operation: Readonly<Record<string, string>>) {
  const { prefix, delimiter, limit } = query;
  return {
    method: "GET",
    bucket,
    query: { ...operation, prefix, delimiter, "max-keys": String(limit) },
  };
}

async function listObjects({ api, bucketName }: OperationContext, query: ListQuery) {
  const after = readPosition(query.cursor);
  const page = await api.store.objects.list({
    ...toRequest(bucketName, query),
    maxKeys: query.limit,
    ...(after === undefined ? {} : { after }),
  });
  return toPage(page.objects.map(describeObject), page.commonPrefixes, page.next, page.isTruncated);
}

async function listVersions(
  { api, bucketName }: OperationContext,
  query: ListQuery,
  mayReadRetention: (key: string) => Promise<boolean>,
  mayReadHold: (key: string) => Promise<boolean>,
) {
  const after = readPosition(query.cursor);
  const page = await api.store.objects.listVersions({
    ...toRequest(bucketName, query),
    maxKeys: query.limit,
    ...(after === undefined ? {} : { after: withId(after, "versionId") }),
  });
  const retained = page.versions.filter(({ retention }) => retention !== undefined);
  const held = page.versions.filter(({ legalHold }) => legalHold === true);
  const shownRetentions = await chooseKeys(retained, mayReadRetention);
  const shownHolds = await chooseKeys(held, mayReadHold);
  const items = page.versions.map((version) => ({
    ...describeObject(version),
    version: version.versionId,
    is_latest: version.isLatest,
    is_delete_marker: version.isDeleteMarker,
    ...(shownRetentions.has(version.key) ? describeRetention(version) : {}),
    ...(shownHolds.has(version.key) && version.legalHold === true
      ? { legal_hold: version.legalHold }
      : {}),
  }));
  return toPage(items, page.commonPrefixes, page.next, page.isTruncated, page.next?.versionId);
}

async function listUploads({ api, bucketName }: OperationContext, query: ListQuery) {
  const after = readPosition(query.cursor);
  const page = await api.store.uploads.list({
    ...toRequest(bucketName, query),
    maxUploads: query.limit,
    ...(after === undefined ? {} : { after: withId(after, "uploadId") }),
  });
  const items = page.uploads.map(({ uploadId, key, createdMs }) => ({
    upload_id: uploadId,
    key,
    started_at: new Date(createdMs).toISOString(),
  }));
  return toPage(items, page.commonPrefixes, page.next, page.isTruncated, page.next?.uploadId);
}

function toRequest(bucket: string, { prefix, delimiter }: ListQuery) {
  return {
    bucket,
    ...(prefix === "" ? {} : { prefix }),
    ...(delimiter === "" ? {} : { delimiter }),
  };
}

/** The keys for which the caller has a permission. */
async function chooseKeys(
  versions: readonly ListedVersion[],
  mayRead: (key: string) => Promise<boolean>,
): Promise<ReadonlySet<string>> {
  const keys = new Set(versions.map(({ key }) => key));
  for (const key of keys) if (!(await mayRead(key))) keys.delete(key);
  return keys;
}

function describeRetention({ retention }: ListedVersion) {
  if (retention === undefined) return {};
  const { mode, untilMs } = retention;
  return { retention: { mode, until: new Date(untilMs).toISOString() } };
}

function describeObject(object: ListedObject) {
  return {
    key: object.key,
    size: object.sizeBytes,
    etag: object.etag,
    modified_at: new Date(object.modifiedMs).toISOString(),
    storage_class: object.storageClass,
  };
}

function toPage<T>(
  items: T[],
  prefixes: string[],
  next: ListPosition | undefined,
  isTruncated: boolean,
  id?: string,
) {
  const position = isTruncated ? next : undefined;
  return {
    items,
    prefixes,
    next_cursor: position === undefined ? null : encodeCursor({ ...position, id }),
  };
}

function readPosition(cursor: string | undefined): Position | undefined {
  return cursor === undefined ? undefined : decodeCursor(cursor, positionSchema);
}

function withId<Name extends string>({ id, ...position }: Position, name: Name) {
  return { ...position, ...(id === undefined ? {} : { [name]: id }) } as ListPosition &
    Partial<Record<Name, string>>;
}
