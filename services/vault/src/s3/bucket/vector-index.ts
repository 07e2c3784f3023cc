// The vector index of a bucket: PutBucketVectorIndex, GetBucketVectorIndex, DeleteBucketVectorIndex
import { z } from "zod";
import { S3Error } from "../../model/s3-error.ts";
import { DIMENSION_MAX, VECTOR_METRICS } from "../../model/vector.ts";
import { answerEmpty } from "../answer.ts";
import { getBucket, type OperationHandler } from "../context.ts";
import { answerJson, readJsonDocument, requireMatch, tagDocument } from "../json-document.ts";
import { receiveDocument } from "../payload.ts";

const DOCUMENT_BYTES_MAX = 65_536;
const indexSchema = z.strictObject({
  dimension: z.int().min(1).max(DIMENSION_MAX),
  metric: z.enum(VECTOR_METRICS),
});

export const putBucketVectorIndex: OperationHandler = async (context) => {
  const { api, bucketName } = context;
  const body = await receiveDocument(context, { bytesMax: DOCUMENT_BYTES_MAX });
  const document = readJsonDocument(body, indexSchema);
  const expected = requireMatch(context, getBucket(context).settings.vectorIndex);
  await api.store.buckets.setSetting(bucketName, "vectorIndex", document, expected);
  return answerEmpty(200, [["ETag", tagDocument(document)]]);
};

export const getBucketVectorIndex: OperationHandler = (context) => {
  const document = getBucket(context).settings.vectorIndex;
  if (document === undefined) throw new S3Error("NoSuchVectorIndex");
  return answerJson(document, [["ETag", tagDocument(document)]]);
};

/** Its vectors are removed in the background. */
export const deleteBucketVectorIndex: OperationHandler = async (context) => {
  const { api, bucketName } = context;
  const expected = requireMatch(context, getBucket(context).settings.vectorIndex);
  await api.store.buckets.deleteSetting(bucketName, "vectorIndex", expected);
  return answerEmpty();
};
