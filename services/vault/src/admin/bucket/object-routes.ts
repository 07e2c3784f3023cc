// Objects in the admin API: read, describe, write, delete.
import { PlatformError } from "@platform/kernel/errors";
import { bytes, type ApiRoute, defineRoute, NO_BODY } from "@platform/kernel/http";
import { z } from "zod";
import { S3Error } from "../../model/s3-error.ts";
import {
  bucketParams,
  BUCKET_PROBLEMS,
  keySchema,
  OBJECT_TAG,
  versionSchema,
} from "./bucket-schema.ts";
import type { ConsoleOperations, SentRequest } from "./console-operations.ts";
import { answerObject, readHeader } from "./object-answer.ts";
import { describeObject, objectInfo } from "./object-info.ts";

/** Headers of a request that are those of S3; others are not passed on. */
const READ_FIELDS: ReadonlySet<string> = new Set([
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
  "range",
]);
const WRITE_FIELDS: ReadonlySet<string> = new Set([
  "cache-control",
  "content-disposition",
  "content-encoding",
  "content-language",
  "content-md5",
  "content-type",
  "expires",
  "if-match",
  "if-none-match",
]);
const EXTENSIONS =
  /^x-amz-(?:meta-.+|tagging|storage-class|acl|object-lock-.+|server-side-encryption.*|checksum-.+|sdk-checksum-algorithm|bypass-governance-retention)$/;

const objectQuery = z.object({
  version: versionSchema.optional().describe("Version id; the live version without it."),
});
const readQuery = objectQuery.extend({
  info: z
    .enum(["", "true", "false"])
    .transform((text) => text !== "false")
    .default(false)
    .describe("Answers a JSON description instead of the bytes."),
});
const writeQuery = z.object({
  content_type: z
    .string()
    .regex(/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:\s*;[\x20-\x7e]*)?$/)
    .max(256)
    .optional()
    .describe("Media type of the object; replaces that of the request."),
});
/** The answer to a write. */
export const written = z.object({
  key: z.string(),
  etag: z.string(),
  version: z.string().nullable(),
});
/** Refusals of operations on an object. */
export const OBJECT_PROBLEMS = {
  ...BUCKET_PROBLEMS,
  404: "The bucket or the object does not exist.",
};

interface OptionalKey {
  key?: string | undefined;
}

/** One of the two addresses of an object. */
interface ObjectAddress {
  readonly path: string;
  readonly note: string;
  readonly params: z.ZodType<{ bucket: string } & OptionalKey>;
  /** The query of an operation, with the key if the path does not have it. */
  readonly extendQuery: <Query extends z.ZodObject>(
    query: Query,
  ) => z.ZodType<z.output<Query> & OptionalKey>;
}

/** The key is in the path, or in the query, because URLs cannot express the segments `.` and `..`. */
const ADDRESSES: readonly ObjectAddress[] = [
  {
    path: "/api/v1/buckets/{bucket}/objects/{key*}",
    note: "",
    params: bucketParams.extend({ key: keySchema }),
    extendQuery: (query) => query as never,
  },
  {
    path: "/api/v1/buckets/{bucket}/object",
    note: ", with its key in the query",
    params: bucketParams,
    extendQuery: (query) => query.extend({ key: keySchema }) as never,
  },
];
type Addressed = SentRequest & {
  readonly params: { bucket: string } & OptionalKey;
  readonly query: OptionalKey;
};

export function createObjectRoutes(operations: ConsoleOperations): ApiRoute[] {
  return ADDRESSES.flatMap((address) => [
    createGetRoute(operations, address),
    createPutRoute(operations, address),
    createDeleteRoute(operations, address),
  ]);
}

function createGetRoute(
  operations: ConsoleOperations,
  { path, params, extendQuery, note }: ObjectAddress,
): ApiRoute {
  return defineRoute({
    method: "GET",
    path,
    summary: `The bytes of an object${note}`,
    description:
      "With ranges and conditions; browsers save the bytes and never run them. With `info`, JSON: size, type, metadata, lock, " +
      "and tags if the caller may read them.",
    tag: OBJECT_TAG,
    access: "guarded",
    params,
    query: extendQuery(readQuery),
    answer: bytes("*/*", { json: objectInfo }),
    problems: { ...OBJECT_PROBLEMS, 416: "The range is beyond the object." },
    handle: async (request) => {
      const { method, headers } = request;
      const target = toTarget(request);
      const { version, info } = request.query;
      if (info) return describeObject(operations, request, target, version);
      const fields = readFields(headers, READ_FIELDS);
      const answer = await operations
        .run(request, { ...target, method, query: toVersion(version), fields })
        .catch(answerNotModified);
      return answer instanceof Response ? answer : answerObject(answer, method, target.key);
    },
  });
}

function createPutRoute(
  operations: ConsoleOperations,
  { path, params, extendQuery, note }: ObjectAddress,
): ApiRoute {
  return defineRoute({
    method: "PUT",
    path,
    summary: `Write an object${note}`,
    description:
      "The body, up to 5 GiB, with a Content-Length. Headers as in S3: conditions, `x-amz-meta-…`, `x-amz-tagging`, " +
      "object lock, checksums.",
    tag: OBJECT_TAG,
    access: "guarded",
    params,
    query: extendQuery(writeQuery),
    bodyKind: "stream",
    answer: written,
    problems: {
      ...BUCKET_PROBLEMS,
      412: "The condition does not hold.",
      507: "Less than the reserve of the disk is free.",
    },
    handle: async (request) => {
      const target = toTarget(request);
      const fields = readFields(request.headers, WRITE_FIELDS);
      const { content_type: type } = request.query;
      if (type !== undefined) fields.set("content-type", type);
      const body = readStream(request.request);
      const answer = await operations.run(request, { ...target, method: "PUT", fields, body });
      return {
        key: target.key,
        etag: unquote(readHeader(answer, "etag")),
        version: readHeader(answer, "x-amz-version-id") ?? null,
      };
    },
  });
}

function createDeleteRoute(
  operations: ConsoleOperations,
  { path, params, extendQuery, note }: ObjectAddress,
): ApiRoute {
  return defineRoute({
    method: "DELETE",
    path,
    summary: `Delete an object, or one version${note}`,
    description: "Without `version` a versioned bucket gets a delete marker.",
    tag: OBJECT_TAG,
    access: "guarded",
    params,
    query: extendQuery(objectQuery),
    problems: BUCKET_PROBLEMS,
    answer: NO_BODY,
    handle: async (request) => {
      await operations.run(request, {
        ...toTarget(request),
        method: "DELETE",
        query: toVersion(request.query.version),
        fields: readFields(request.headers, WRITE_FIELDS),
      });
    },
  });
}

/** The body of a request as a stream, with its declared length. */
export function readStream({ body, headers }: Request) {
  const declared = headers.get("content-length");
  return {
    stream: body ?? toStream([]),
    contentLength: declared === null ? (body === null ? 0 : undefined) : Number(declared),
  };
}

async function* toStream(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* pieces;
}

/** The headers of S3 in a request. */
function readFields(headers: Headers, names: ReadonlySet<string>) {
  const fields = new Map<string, string>();
  for (const [name, value] of headers) {
    if (names.has(name) || EXTENSIONS.test(name)) fields.set(name, value);
  }
  return fields;
}

/** An ETag without quotes. */
export function unquote(etag = ""): string {
  return etag.replaceAll('"', "");
}

function toTarget({ params, query }: Addressed): { bucket: string; key: string } {
  const key = params.key ?? query.key;
  if (key === undefined) throw new PlatformError("bad_request", "The key is missing.");
  return { bucket: params.bucket, key };
}

function toVersion(version: string | undefined): Record<string, string> {
  return version === undefined ? {} : { versionId: version };
}

function answerNotModified(error: unknown): Response {
  if (!(error instanceof PlatformError) || !(error.cause instanceof S3Error)) throw error;
  if (error.cause.code !== "NotModified") throw error;
  return new Response(null, { status: 304, headers: error.cause.headers.map(([...pair]) => pair) });
}
