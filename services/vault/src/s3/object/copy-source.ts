// The source of a copy: `x-amz-copy-source`, with its own conditions, key and permission.
import type { CopyRequest } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";
import { StoreError } from "../../model/store-error.ts";
import { checkKeyUse, hideMissing, requireSourceRead } from "../authorization.ts";
import { type OperationContext, requireVersionId } from "../context.ts";
import { parseCopySource } from "../wire/copy-source.ts";
import { readConditions } from "./conditions.ts";
import { readCustomerKey } from "./encryption.ts";

/** Reads and authorizes the source of a copy. */
export async function readCopySource(context: OperationContext): Promise<CopyRequest["source"]> {
  const { fields, api } = context;
  const named = parseCopySource(fields.get("x-amz-copy-source") ?? "");
  if (named === undefined) {
    throw new S3Error(
      "InvalidArgument",
      "Copy Source must mention the source bucket and key: sourcebucket/sourcekey",
    );
  }
  const { bucketName, key, versionId } = named;
  if (versionId !== undefined) requireVersionId(versionId);
  const bucket = api.store.buckets.require(bucketName);
  const action = versionId === undefined ? "s3:GetObject" : "s3:GetObjectVersion";
  await requireSourceRead(context, { action, bucket, bucketName, key, versionId });
  const checkKey = checkKeyUse(context, "kms:Decrypt");
  const source: CopyRequest["source"] = { bucket: bucketName, key, checkKey };
  if (versionId !== undefined) source.versionId = versionId;
  const conditions = readConditions(fields, "copy");
  if (conditions !== undefined) source.conditions = conditions;
  const customerKey = readCustomerKey(fields, true);
  if (customerKey !== undefined) source.customerKey = customerKey;
  return source;
}

/**
 * A failed condition on the source is 412, never 304; a delete marker cannot be a source. Callers that may not list the
 * bucket do not learn that it is missing.
 */
export async function toCopyError(context: OperationContext, error: unknown): Promise<unknown> {
  if (!(error instanceof StoreError)) return error;
  if (error.code === "NotModified") return new S3Error("PreconditionFailed");
  if (error.code !== "MethodNotAllowed") return hideMissing(context, error);
  return new S3Error(
    "InvalidRequest",
    "The source of a copy request may not specifically refer to a delete marker by version id.",
  );
}
