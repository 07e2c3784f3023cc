// CopyObject
import type { CopyRequest } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerXml, type Header } from "../answer.ts";
import { requirePermission } from "../authorization.ts";
import { getActor, type OperationContext, type OperationHandler } from "../context.ts";
import { CHECKSUM_ALGORITHMS, readChecksumAlgorithm } from "../wire/checksum.ts";
import { tag, xmlDocument } from "../wire/xml.ts";
import { getVersionHeaders } from "./address.ts";
import { readAttributes } from "./attributes-in.ts";
import { readWriteConditions } from "./conditions.ts";
import { readCopySource, toCopyError } from "./copy-source.ts";
import { getNewEncryptionHeaders } from "./encryption.ts";
import { findExpirationHeaders } from "./object-headers.ts";

export const copyObject: OperationHandler = async (context) => {
  const { api, fields } = context;
  const far = api.federation.copyIn(context);
  if (far !== undefined) return far;
  const source = await readCopySource(context);
  const metadataDirective = readDirective(fields.get("x-amz-metadata-directive"), "metadata");
  const taggingDirective = readDirective(fields.get("x-amz-tagging-directive"), "tagging");
  const attributes = await readAttributes(context);
  if (taggingDirective === "COPY") await requireTagCopy(context, source);
  const algorithm = fields.get("x-amz-checksum-algorithm");
  const conditions = readWriteConditions(fields);
  const copy: CopyRequest = {
    source,
    bucket: context.bucketName,
    key: context.key,
    metadataDirective,
    taggingDirective,
    attributes,
    ...(algorithm === undefined ? {} : { checksum: readChecksumAlgorithm(algorithm) }),
    ...(conditions === undefined ? {} : { conditions }),
    actor: getActor(context),
  };
  const result = await api.store.copies.copy(copy, context.submit).catch(async (error: unknown) => {
    throw await toCopyError(context, error);
  });
  const headers: Header[] = [
    ...getVersionHeaders(context, result.versionId),
    ...getNewEncryptionHeaders(result.encryption),
    ...(await findExpirationHeaders(context, context.key, result.versionId)),
  ];
  if (api.store.buckets.require(source.bucket).versioning !== "Unset") {
    headers.push(["x-amz-copy-source-version-id", result.sourceVersionId]);
  }
  const { checksum } = result;
  const inner =
    tag("ETag", `"${result.etag}"`) +
    tag("LastModified", new Date(result.modifiedMs).toISOString()) +
    (checksum === undefined
      ? ""
      : tag(CHECKSUM_ALGORITHMS[checksum.algorithm].element, checksum.value) +
        tag("ChecksumType", checksum.type));
  return answerXml(xmlDocument("CopyObjectResult", inner), headers);
};

// Copied tags are read there and written here, which requires both permissions.
async function requireTagCopy(
  context: OperationContext,
  source: CopyRequest["source"],
): Promise<void> {
  const { api, caller, bucketName, key } = context;
  if (caller.kind === "root") return;
  const { bucket, key: sourceKey, versionId } = source;
  const object = await api.store.objects
    .describe({
      bucket,
      key: sourceKey,
      ...(versionId === undefined ? {} : { versionId }),
    })
    .catch(async (error: unknown) => {
      throw await toCopyError(context, error);
    });
  if (Object.keys(object.tags).length === 0) return;
  await requirePermission(context, {
    action: versionId === undefined ? "s3:GetObjectTagging" : "s3:GetObjectVersionTagging",
    bucket: api.store.buckets.require(bucket),
    bucketName: bucket,
    key: sourceKey,
    versionId,
  });
  const action = "s3:PutObjectTagging";
  await requirePermission(context, { action, bucket: context.bucket, bucketName, key });
}

function readDirective(text: string | undefined, what: "metadata" | "tagging"): "COPY" | "REPLACE" {
  if (text === undefined || text === "COPY") return "COPY";
  if (text === "REPLACE") return "REPLACE";
  throw new S3Error("InvalidArgument", {
    message: `Unknown ${what} directive.`,
    elements: [
      ["ArgumentName", `x-amz-${what}-directive`],
      ["ArgumentValue", text.slice(0, 64)],
    ],
  });
}
