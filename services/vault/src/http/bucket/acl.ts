// GetBucketAcl and PutBucketAcl
import { formatAcl, parseAcl, readAclFields } from "../acl-document.ts";
import { answerEmpty, answerXml } from "../answer.ts";
import { getBucket, getOwner } from "../context.ts";
import type { OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { S3Error } from "../../wire/error.ts";

/** GetBucketAcl */
export const getBucketAcl: OperationHandler = (context) =>
  answerXml(formatAcl(getBucket(context).settings.acl, getOwner(context.api)));

/** PutBucketAcl */
export const putBucketAcl: OperationHandler = async (context) => {
  const { api, fields } = context;
  const bucket = getBucket(context);
  const body = await receiveDocument(context.request, context.payload);
  const byFields = readAclFields(fields, bucket, getOwner(api));
  if (byFields !== undefined && body.length > 0) throw new S3Error("UnexpectedContent");
  if (byFields === undefined && body.length === 0) {
    throw new S3Error("MissingSecurityHeader", { elements: [["MissingHeaderName", "x-amz-acl"]] });
  }
  const acl = byFields ?? parseAcl(body, bucket);
  const grants = acl.grants.map((grant) => ({ ...grant }));
  await api.store.setBucketSetting(context.bucketName, "acl", { grants });
  return answerEmpty(200);
};
