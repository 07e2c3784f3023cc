// UploadPart and UploadPartCopy
import { S3Error } from "../../model/s3-error.ts";
import type { CopyPartRequest, PutPartRequest } from "../../model/upload.ts";
import { answerEmpty, answerXml, type Header } from "../answer.ts";
import { checkKeyUse } from "../authorization.ts";
import type { OperationContext, OperationHandler } from "../context.ts";
import { readCopySource, toCopyError } from "../object/copy-source.ts";
import { getEncryptionHeaders, readPartEncryption } from "../object/encryption.ts";
import { listDigests, planPayload, receiveUpload } from "../payload.ts";
import { CHECKSUM_ALGORITHMS } from "../wire/checksum.ts";
import { tag, xmlDocument } from "../wire/xml.ts";
import { getUploadAddress } from "./upload.ts";

export const uploadPart: OperationHandler = async (context) => {
  const { api, request, fields } = context;
  const plan = planPayload(request, context.payload);
  const encryption = readPartEncryption(fields);
  const put: PutPartRequest = {
    ...getUploadAddress(context),
    partNumber: readPartNumber(context),
    contentLength: plan.contentLength,
    tenant: context.tenant,
    digests: listDigests(plan),
    ...(plan.checksum === undefined ? {} : { checksum: plan.checksum.algorithm }),
    ...(encryption === undefined ? {} : { encryption }),
    checkKey: checkKeyUse(context, "kms:GenerateDataKey"),
  };
  const upload = api.store.uploads.beginPart(put);
  await receiveUpload(request, plan, upload);
  const result = await upload.commit();
  const headers: Header[] = [
    ["ETag", `"${result.etag}"`],
    ...getEncryptionHeaders(result.encryption),
  ];
  if (result.checksum !== undefined) {
    headers.push([CHECKSUM_ALGORITHMS[result.checksum.algorithm].field, result.checksum.value]);
  }
  return answerEmpty(200, headers);
};

export const uploadPartCopy: OperationHandler = async (context) => {
  const { api, fields } = context;
  const far = api.federation.copyIn(context);
  if (far !== undefined) return far;
  const encryption = readPartEncryption(fields);
  const copy: CopyPartRequest = {
    ...getUploadAddress(context),
    partNumber: readPartNumber(context),
    source: await readCopySource(context),
    ...(encryption === undefined ? {} : { encryption }),
    checkKey: checkKeyUse(context, "kms:GenerateDataKey"),
  };
  const range = fields.get("x-amz-copy-source-range");
  if (range !== undefined) copy.range = readCopyRange(range);
  const result = await api.store.uploads.copyPart(copy).catch(async (error: unknown) => {
    throw await toCopyError(context, error);
  });
  const headers: Header[] = [...getEncryptionHeaders(result.encryption)];
  if (api.store.buckets.require(copy.source.bucket).versioning !== "Unset") {
    headers.push(["x-amz-copy-source-version-id", result.sourceVersionId]);
  }
  const { checksum } = result;
  const inner =
    tag("ETag", `"${result.etag}"`) +
    tag("LastModified", new Date(result.modifiedMs).toISOString()) +
    (checksum === undefined
      ? ""
      : tag(CHECKSUM_ALGORITHMS[checksum.algorithm].element, checksum.value));
  return answerXml(xmlDocument("CopyPartResult", inner), headers);
};

function readPartNumber(context: OperationContext): number {
  const text = context.query.get("partNumber");
  const value = Number(text);
  if (text === undefined || !/^\d{1,5}$/.test(text) || value < 1 || value > 10_000) {
    throw new S3Error(
      "InvalidArgument",
      "Part number must be an integer between 1 and 10000, inclusive",
    );
  }
  return value;
}

function readCopyRange(text: string): { start: number; end: number } {
  const match = /^bytes=(\d{1,15})-(\d{1,15})$/.exec(text);
  if (match === null || Number(match[2]) < Number(match[1])) {
    throw new S3Error(
      "InvalidArgument",
      "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the zero-based offsets of the first and last bytes to copy",
    );
  }
  return { start: Number(match[1]), end: Number(match[2]) };
}
