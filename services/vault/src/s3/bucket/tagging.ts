// Tags of buckets.
import { S3Error } from "../../model/s3-error.ts";
import { answerEmpty, answerXml } from "../answer.ts";
import { getBucket, type OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { BUCKET_TAGS_MAX, formatTagging, parseTagging } from "../tagging-document.ts";

/** GetBucketTagging */
export const getBucketTagging: OperationHandler = (context) => {
  const tags = getBucket(context).settings.tagging;
  if (tags === undefined) throw new S3Error("NoSuchTagSet");
  return answerXml(formatTagging(tags as Record<string, string>));
};

/** PutBucketTagging */
export const putBucketTagging: OperationHandler = async (context) => {
  const body = await receiveDocument(context);
  const tags = parseTagging(body, BUCKET_TAGS_MAX);
  await context.api.store.setBucketSetting(context.bucketName, "tagging", tags);
  return answerEmpty();
};

/** DeleteBucketTagging */
export const deleteBucketTagging: OperationHandler = async (context) => {
  await context.api.store.deleteBucketSetting(context.bucketName, "tagging");
  return answerEmpty();
};
