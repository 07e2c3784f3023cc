// PutObject
import type { PutRequest, PutResult } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerEmpty, type Header } from "../answer.ts";
import { getActor, type OperationContext, type OperationHandler } from "../context.ts";
import { listDigests, planPayload, receiveUpload } from "../payload.ts";
import { getVersionHeaders } from "./address.ts";
import { readAttributes } from "./attributes-in.ts";
import { readWriteConditions } from "./conditions.ts";
import { getNewEncryptionHeaders } from "./encryption.ts";
import { getChecksumHeaders, getExpirationHeaders } from "./object-headers.ts";

export const putObject: OperationHandler = async (context) => {
  const { api, request, fields } = context;
  // It would append, whereas PUT replaces.
  if (fields.has("x-amz-write-offset-bytes")) {
    throw new S3Error("NotImplemented", "Appending is not available yet.");
  }
  const plan = planPayload(request, context.payload);
  const conditions = readWriteConditions(fields);
  const put: PutRequest = {
    ...(await readAttributes(context)),
    bucket: context.bucketName,
    key: context.key,
    contentLength: plan.contentLength,
    // The default of AWS.
    checksum: plan.checksum?.algorithm ?? "CRC64NVME",
    digests: listDigests(plan),
    ...(conditions === undefined ? {} : { conditions }),
    actor: getActor(context),
    tenant: context.tenant,
  };
  const { submit } = context;
  const upload = api.store.objects.beginPut(put, submit === undefined ? {} : { submit });
  await receiveUpload(request, plan, upload);
  const result = await upload.commit();
  const subject = { ...result, key: context.key, tags: put.tags ?? {} };
  return answerEmpty(200, [
    ...getPutHeaders(context, result),
    ...getExpirationHeaders(context, subject),
  ]);
};

/** The headers of an answer to a put. */
export function getPutHeaders(context: OperationContext, result: PutResult): Header[] {
  return [
    ["ETag", `"${result.etag}"`],
    ...getVersionHeaders(context, result.versionId),
    ...getChecksumHeaders(result.checksum),
    ...getNewEncryptionHeaders(result.encryption),
  ];
}
