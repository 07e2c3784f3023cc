// The description of an object as JSON.
import { z } from "zod";
import { CHECKSUM_ALGORITHMS, type ObjectInfo } from "../../model/object.ts";
import type { ConsoleOperations, SentRequest } from "./console-operations.ts";

const texts = z.record(z.string(), z.string());

/** The description. */
export const objectInfo = z
  .object({
    key: z.string(),
    version: z.string(),
    is_latest: z.boolean(),
    size: z.int(),
    etag: z.string(),
    modified_at: z.string(),
    storage_class: z.string(),
    content_type: z.string(),
    cache_control: z.string().nullable(),
    content_encoding: z.string().nullable(),
    metadata: texts,
    tags: texts.nullable().describe("Null if the caller may not read them."),
    retention: z
      .object({ mode: z.enum(["GOVERNANCE", "COMPLIANCE"]), until: z.string() })
      .nullable(),
    legal_hold: z.boolean(),
    checksum: z
      .object({
        algorithm: z.enum(CHECKSUM_ALGORITHMS),
        value: z.string().describe("Base64, with a suffix `-<parts>` if it is composite."),
        type: z.enum(["FULL_OBJECT", "COMPOSITE"]),
      })
      .nullable(),
    encryption: z.enum(["SSE-S3", "SSE-KMS", "SSE-C"]).nullable(),
    parts: z.int().nullable().describe("Of a multipart upload."),
  })
  .meta({ id: "ObjectInfo" });

/** Describes an object, with its tags if the caller may read them. */
export async function describeObject(
  operations: ConsoleOperations,
  request: SentRequest,
  target: { bucket: string; key: string },
  version: string | undefined,
): Promise<z.infer<typeof objectInfo>> {
  const query: Record<string, string> = version === undefined ? {} : { versionId: version };
  const object = await operations.perform(
    request,
    { ...target, method: "HEAD", query },
    async (context) => {
      // It refuses what a HEAD would refuse: delete markers, and names of missing objects.
      await context.operation.handler(context);
      return context.api.store.objects.describe({ ...target, ...query });
    },
  );
  const mayReadTags = await operations.isAllowed(request, {
    ...target,
    method: "GET",
    query: { ...query, tagging: "" },
  });
  return toInfo(object, mayReadTags);
}

function toInfo(object: ObjectInfo, hasTags: boolean) {
  const { headers, retention } = object;
  return {
    key: object.key,
    version: object.versionId,
    is_latest: object.isLatest,
    size: object.sizeBytes,
    etag: object.etag,
    modified_at: new Date(object.modifiedMs).toISOString(),
    storage_class: object.storageClass,
    content_type: headers.contentType ?? "binary/octet-stream",
    cache_control: headers.cacheControl ?? null,
    content_encoding: headers.contentEncoding ?? null,
    metadata: object.metadata,
    tags: hasTags ? object.tags : null,
    retention:
      retention === undefined
        ? null
        : { mode: retention.mode, until: new Date(retention.untilMs).toISOString() },
    legal_hold: object.legalHold ?? false,
    checksum: object.checksum ?? null,
    encryption: object.encryption?.type ?? null,
    parts: object.partsCount ?? null,
  };
}
