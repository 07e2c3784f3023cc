// GetBucketAcl and PutBucketAcl
import { formatAcl, receiveAcl } from "../acl-document.ts";
import { answerEmpty, answerXml } from "../answer.ts";
import { getBucket, getOwner, type OperationHandler } from "../context.ts";

export const getBucketAcl: OperationHandler = (context) => {
  const bucket = getBucket(context);
  return answerXml(formatAcl(bucket.settings.acl, getOwner(context.api), bucket));
};

export const putBucketAcl: OperationHandler = async (context) => {
  const acl = await receiveAcl(context);
  const grants = acl.grants.map((grant) => ({ ...grant }));
  await context.api.store.buckets.setSetting(context.bucketName, "acl", { grants });
  return answerEmpty(200);
};
