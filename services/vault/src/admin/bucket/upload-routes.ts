// Multipart uploads in the admin API: browsers send large files in parts, which they repeat and resume one by one.
import { PlatformError } from "@platform/kernel/errors";
import { type ApiRoute, defineRoute, type HeaderReader, NO_BODY } from "@platform/kernel/http";
import { z } from "zod";
import { StoreError } from "../../model/store-error.ts";
import type { Store } from "../../object-store.ts";
import { getActor, type OperationContext } from "../../s3/context.ts";
import { readWriteConditions } from "../../s3/object/conditions.ts";
import { parseXml } from "../../s3/wire/xml.ts";
import { asProblem } from "../problem.ts";
import { bucketParams, BUCKET_PROBLEMS, keySchema, OBJECT_TAG } from "./bucket-schema.ts";
import { type ConsoleOperations, onAnyKey } from "./console-operations.ts";
import { readHeader } from "./object-answer.ts";
import { readStream, unquote } from "./object-routes.ts";

const PARTS_MAX = 10_000;
const PAGE_MAX = 1_000;
/** Ten thousand parts with their ETags as JSON. */
const COMPLETE_BYTES_MAX = 2 * 1024 ** 2;
const METADATA_MAX = 100;

const createBody = z.strictObject({
  key: keySchema,
  content_type: z.string().max(256).optional(),
  metadata: z
    .record(z.string().regex(/^[\w.-]{1,128}$/), z.string().max(2_048))
    .refine((metadata) => Object.keys(metadata).length <= METADATA_MAX, "too many members")
    .default({}),
});
const uploadParams = bucketParams.extend({
  upload: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/)
    .describe("Id of the upload."),
});
const partParams = uploadParams.extend({
  part: z
    .string()
    .regex(/^\d{1,5}$/)
    .transform(Number)
    .refine((part) => part >= 1 && part <= PARTS_MAX, "a whole number from 1 to 10000")
    .describe("Number of the part, 1 to 10 000."),
});
const partsQuery = z.object({
  after: z
    .string()
    .regex(/^\d{1,5}$/)
    .transform(Number)
    .default(0)
    .describe("`next_part` of the previous page."),
});
const partsAnswer = z.object({
  upload_id: z.string(),
  key: z.string(),
  started_at: z.string(),
  parts: z.array(
    z.object({ part: z.int(), etag: z.string(), size: z.int(), modified_at: z.string() }),
  ),
  next_part: z.int().nullable(),
});
const completeBody = z.strictObject({
  parts: z
    .array(z.strictObject({ part: z.int().min(1).max(PARTS_MAX), etag: z.string().max(256) }))
    .min(1)
    .max(PARTS_MAX)
    .optional()
    .describe("In ascending order. Default: all parts that were sent."),
});
const PROBLEMS = { ...BUCKET_PROBLEMS, 404: "The bucket or the upload does not exist." };

export function createUploadRoutes(operations: ConsoleOperations, store: Store): ApiRoute[] {
  return [
    createCreateRoute(operations),
    createPartRoute(operations, store),
    createPartsRoute(operations, store),
    createCompleteRoute(operations, store),
    createAbortRoute(operations, store),
  ];
}

const COMMON = { tag: OBJECT_TAG, access: "guarded" } as const;
const UPLOAD_PATH = "/api/v1/buckets/{bucket}/uploads/{upload}";

function createCreateRoute(operations: ConsoleOperations): ApiRoute {
  return defineRoute({
    ...COMMON,
    method: "POST",
    path: "/api/v1/buckets/{bucket}/uploads",
    summary: "Start an upload in parts",
    params: bucketParams,
    authorize: operations.createCheck(({ params: { bucket = "" } }) => [
      onAnyKey({ method: "POST", bucket, query: { uploads: "" } }),
    ]),
    body: createBody,
    status: 201,
    answer: z.object({ upload_id: z.string(), key: z.string() }),
    problems: BUCKET_PROBLEMS,
    handle: async (request) => {
      const { key, content_type: type, metadata } = request.body;
      const fields = Object.entries(metadata).map(
        ([name, value]) => [`x-amz-meta-${name.toLowerCase()}`, value] as const,
      );
      const answer = await operations.run(request, {
        method: "POST",
        bucket: request.params.bucket,
        key,
        query: { uploads: "" },
        fields: type === undefined ? fields : [...fields, ["content-type", type]],
      });
      const root = parseXml(Buffer.from(answer.body ?? ""), "InitiateMultipartUploadResult");
      return { upload_id: root.getText("UploadId"), key };
    },
  });
}

function createPartRoute(operations: ConsoleOperations, store: Store): ApiRoute {
  return defineRoute({
    ...COMMON,
    method: "PUT",
    path: `${UPLOAD_PATH}/{part}`,
    summary: "Send a part",
    description:
      "The body, with a Content-Length. Parts but the last have 5 MiB to 5 GiB. A part sent again replaces the former one.",
    params: partParams,
    bodyKind: "stream",
    answer: z.object({ part: z.int(), etag: z.string() }),
    problems: { ...PROBLEMS, 507: "Less than the reserve of the disk is free." },
    handle: async (request) => {
      const { part } = request.params;
      const target = await findUpload(store, request.params, { partNumber: String(part) });
      const body = readStream(request.request);
      const answer = await operations.run(request, { ...target, method: "PUT", body });
      return { part, etag: unquote(readHeader(answer, "etag")) };
    },
  });
}

function createPartsRoute(operations: ConsoleOperations, store: Store): ApiRoute {
  return defineRoute({
    ...COMMON,
    method: "GET",
    path: UPLOAD_PATH,
    summary: "The parts that were sent, to resume an upload",
    description: "Up to 1 000 parts, by number.",
    params: uploadParams,
    query: partsQuery,
    answer: partsAnswer,
    problems: PROBLEMS,
    handle: async (request) => {
      const target = await findUpload(store, request.params);
      const { after } = request.query;
      return operations.perform(request, { ...target, method: "GET" }, async () => {
        const page = await store.uploads.listParts(toAddress(target), {
          afterPartNumber: after,
          maxParts: PAGE_MAX,
        });
        return {
          upload_id: page.upload.uploadId,
          key: page.upload.key,
          started_at: new Date(page.upload.createdMs).toISOString(),
          parts: page.parts.map((part) => ({
            part: part.partNumber,
            etag: part.etag,
            size: part.sizeBytes,
            modified_at: new Date(part.modifiedMs).toISOString(),
          })),
          next_part: page.nextPartNumber ?? null,
        };
      });
    },
  });
}

function createCompleteRoute(operations: ConsoleOperations, store: Store): ApiRoute {
  return defineRoute({
    ...COMMON,
    method: "POST",
    path: UPLOAD_PATH,
    summary: "Complete an upload: its parts become the object",
    description: "If-None-Match: * refuses to replace an object.",
    params: uploadParams,
    authorize: operations.createCheck(({ params: { bucket = "", upload = "" }, headers }) => {
      const call = { method: "POST", bucket, query: { uploadId: upload } };
      const fields = readConditions(headers);
      const key = findKey(store, bucket, upload);
      return [key === undefined ? onAnyKey(call) : { ...call, key, fields }];
    }),
    body: completeBody.default({}),
    bodyBytesMax: COMPLETE_BYTES_MAX,
    answer: z.object({ key: z.string(), etag: z.string(), version: z.string() }),
    problems: { ...PROBLEMS, 412: "The condition does not hold." },
    handle: async (request) => {
      const target = await findUpload(store, request.params);
      const { parts } = request.body;
      const call = { ...target, method: "POST", fields: readConditions(request.headers) };
      return operations.perform(request, call, (context) =>
        complete(context, toAddress(target), parts),
      );
    },
  });
}

function createAbortRoute(operations: ConsoleOperations, store: Store): ApiRoute {
  return defineRoute({
    ...COMMON,
    method: "DELETE",
    path: UPLOAD_PATH,
    summary: "Abort an upload: its parts are deleted",
    params: uploadParams,
    problems: PROBLEMS,
    answer: NO_BODY,
    handle: async (request) => {
      const target = await findUpload(store, request.params);
      await operations.run(request, { ...target, method: "DELETE" });
    },
  });
}

function readConditions(headers: HeaderReader): [string, string][] {
  return ["if-match", "if-none-match"].flatMap((name): [string, string][] => {
    const value = headers.get(name);
    return value === null ? [] : [[name, value]];
  });
}

async function complete(
  context: OperationContext,
  address: { bucket: string; key: string; uploadId: string },
  given: z.output<typeof completeBody>["parts"],
) {
  const { uploads } = context.api.store;
  const parts =
    given === undefined
      ? await listAllParts(context, address)
      : given.map(({ part, etag }) => ({ partNumber: part, etag: unquote(etag) }));
  if (parts.length === 0) throw new PlatformError("conflict", "The upload has no parts yet.");
  const conditions = readWriteConditions(context.fields);
  const result = await uploads.complete({
    ...address,
    parts,
    actor: getActor(context),
    ...(conditions === undefined ? {} : { conditions }),
  });
  return { key: address.key, etag: result.etag, version: result.versionId };
}

async function listAllParts(
  { api }: OperationContext,
  address: { bucket: string; key: string; uploadId: string },
) {
  const parts: { partNumber: number; etag: string }[] = [];
  let after: number | undefined = 0;
  while (after !== undefined) {
    const page = await api.store.uploads.listParts(address, {
      afterPartNumber: after,
      maxParts: PAGE_MAX,
    });
    parts.push(...page.parts.map(({ partNumber, etag }) => ({ partNumber, etag })));
    after = page.nextPartNumber;
  }
  return parts;
}

// Operations name the key as well: it decides about the permission.
function findUpload(
  store: Store,
  { bucket, upload }: { bucket: string; upload: string },
  query: Readonly<Record<string, string>> = {},
) {
  const find = async () => store.uploads.findKey(bucket, upload);
  return asProblem(find()).then((key) => ({ bucket, key, query: { ...query, uploadId: upload } }));
}

// The upload may be missing; the bucket must exist.
function findKey(store: Store, bucket: string, upload: string): string | undefined {
  try {
    return store.uploads.findKey(bucket, upload);
  } catch (error) {
    if (error instanceof StoreError && error.code === "NoSuchUpload") return undefined;
    throw error;
  }
}

function toAddress({ bucket, key, query }: Awaited<ReturnType<typeof findUpload>>) {
  return { bucket, key, uploadId: query.uploadId };
}
