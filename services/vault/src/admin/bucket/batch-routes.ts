// Changes of several objects in the admin API: deletions and copies.
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import type { Sender } from "../../s3/inner-operations.ts";
import { encodeUri } from "../../s3/sigv4/index.ts";
import { parseXml, tag, wrap, xmlDocument } from "../../s3/wire/xml.ts";
import {
  bucketParams,
  BUCKET_PROBLEMS,
  keySchema,
  OBJECT_TAG,
  versionSchema,
} from "./bucket-schema.ts";
import { NAMED_BY_ITEM } from "../../s3/object/delete-object.ts";
import { type ConsoleOperations, onAnyKey, PLACEHOLDER } from "./console-operations.ts";
import { readHeader } from "./object-answer.ts";
import { OBJECT_PROBLEMS, unquote, written } from "./object-routes.ts";

const DELETE_KEYS_MAX = 1_000;
/** A thousand keys of 1 024 bytes as JSON. */
const DELETE_BYTES_MAX = 4 * 1024 ** 2;
const ELEMENTS_MAX = 10_000;

const deleteBody = z.strictObject({
  objects: z
    .array(z.strictObject({ key: keySchema, version: versionSchema.optional() }))
    .min(1)
    .max(DELETE_KEYS_MAX),
});
const deleteAnswer = z.object({
  deleted: z.array(
    z.object({
      key: z.string(),
      version: z.string().nullable(),
      delete_marker: z.string().nullable().describe("Version id of the new delete marker."),
    }),
  ),
  errors: z.array(
    z.object({
      key: z.string(),
      version: z.string().nullable(),
      code: z.string(),
      message: z.string(),
    }),
  ),
});
type DeleteAnswer = z.input<typeof deleteAnswer>;
const copyBody = z.strictObject({
  source_bucket: z.string().min(1).max(63).optional().describe("Default: this bucket."),
  source_key: keySchema,
  source_version: versionSchema.optional(),
  key: keySchema,
});
/** Routes that delete many objects, and that copy one. */
export function createBatchRoutes(operations: ConsoleOperations): ApiRoute[] {
  return [createDeleteManyRoute(operations), createCopyRoute(operations)];
}

function createDeleteManyRoute(operations: ConsoleOperations): ApiRoute {
  return defineRoute({
    method: "POST",
    path: "/api/v1/buckets/{bucket}/delete",
    summary: "Delete up to 1 000 objects or versions",
    description: "Each is authorized on its own; `errors` lists those that remain.",
    tag: OBJECT_TAG,
    access: "guarded",
    params: bucketParams,
    authorize: operations.createCheck(({ params: { bucket = "" } }) => [
      { method: "POST", bucket, query: { delete: "" }, unknown: NAMED_BY_ITEM },
    ]),
    body: deleteBody,
    bodyBytesMax: DELETE_BYTES_MAX,
    answer: deleteAnswer,
    problems: BUCKET_PROBLEMS,
    handle: async (request) => {
      const { params, body } = request;
      const result: DeleteAnswer = { deleted: [], errors: [] };
      let objects = body.objects;
      for (const sender of operations.listIdentities(request)) {
        const { deleted, errors } = await deleteObjects(operations, sender, params.bucket, objects);
        result.deleted.push(...deleted);
        // Another role of the person may allow those that this one may not delete.
        const denied = errors.filter(({ code }) => code === "AccessDenied");
        result.errors = result.errors.filter(({ code }) => code !== "AccessDenied").concat(errors);
        objects = denied.map(toAddress);
        if (objects.length === 0) break;
      }
      return result;
    },
  });
}

function createCopyRoute(operations: ConsoleOperations): ApiRoute {
  return defineRoute({
    method: "POST",
    path: "/api/v1/buckets/{bucket}/copy",
    summary: "Copy an object into this bucket",
    description: "With its metadata and tags. The bytes are shared where possible.",
    tag: OBJECT_TAG,
    access: "guarded",
    params: bucketParams,
    authorize: operations.createCheck(({ params: { bucket = "" } }) => {
      const fields = [["x-amz-copy-source", `${PLACEHOLDER}/${PLACEHOLDER}`]] as const;
      return [onAnyKey({ method: "PUT", bucket, fields }, "s3:x-amz-copy-source")];
    }),
    body: copyBody,
    answer: written,
    status: 201,
    problems: OBJECT_PROBLEMS,
    handle: async (request) => {
      const { bucket } = request.params;
      const { source_bucket: source = bucket, source_key, source_version, key } = request.body;
      const version = source_version === undefined ? "" : `?versionId=${source_version}`;
      const answer = await operations.run(request, {
        method: "PUT",
        bucket,
        key,
        fields: [["x-amz-copy-source", `${source}/${encodeUri(source_key)}${version}`]],
      });
      const result = parseXml(Buffer.from(answer.body ?? ""), "CopyObjectResult");
      return {
        key,
        etag: unquote(result.findText("ETag")),
        version: readHeader(answer, "x-amz-version-id") ?? null,
      };
    },
  });
}

async function deleteObjects(
  operations: ConsoleOperations,
  sender: Sender,
  bucket: string,
  objects: z.output<typeof deleteBody>["objects"],
): Promise<DeleteAnswer> {
  const items = objects.map(({ key, version }) =>
    wrap("Object", tag("Key", key) + tag("VersionId", version)),
  );
  const answer = await operations.runAs(sender, {
    method: "POST",
    bucket,
    query: { delete: "" },
    body: xmlDocument("Delete", items.join("")),
  });
  return readDeleteResult(Buffer.from(answer.body ?? ""));
}

function toAddress({ key, version }: DeleteAnswer["errors"][number]) {
  return version === null ? { key } : { key, version };
}

function readDeleteResult(body: Buffer): DeleteAnswer {
  const root = parseXml(body, "DeleteResult", { elementsMax: ELEMENTS_MAX });
  return {
    deleted: root.list("Deleted").map((item) => ({
      key: item.getText("Key"),
      version: item.findText("VersionId") ?? null,
      delete_marker: item.findText("DeleteMarkerVersionId") ?? null,
    })),
    errors: root.list("Error").map((item) => ({
      key: item.getText("Key"),
      version: item.findText("VersionId") ?? null,
      code: item.getText("Code"),
      message: item.getText("Message"),
    })),
  };
}
