// The description of an object as JSON.
import type { ObjectInfo } from "../../model/object.ts";
import type { ConsoleOperations, SentRequest } from "./console-operations.ts";

/** Describes an object, with its tags if the caller may read them. */
export async function describeObject(
  operations: ConsoleOperations,
  request: SentRequest,
  target: { bucket: string; key: string },
  version: string | undefined,
): Promise<Response> {
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
  return Response.json(toInfo(object, mayReadTags));
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
