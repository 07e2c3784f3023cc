// The vector index of a bucket: PutBucketVectorIndex, GetBucketVectorIndex, DeleteBucketVectorIndex
import { z } from "zod";
import { LEXICAL_DIMENSION } from "../../embed/lexical.ts";
import { S3Error } from "../../model/s3-error.ts";
import { DIMENSION_MAX, VECTOR_METRICS } from "../../model/vector.ts";
import { answerEmpty } from "../answer.ts";
import { getBucket, type OperationHandler } from "../context.ts";
import { answerJson, readJsonDocument, requireMatch, tagDocument } from "../json-document.ts";
import { receiveDocument } from "../payload.ts";

const DOCUMENT_BYTES_MAX = 65_536;
const EMBED_BYTES_MAX = 1024 * 1024;
const indexSchema = z.strictObject({
  dimension: z.int().min(1).max(DIMENSION_MAX),
  metric: z.enum(VECTOR_METRICS),
  embed: z
    .strictObject({
      from: z.string().regex(/^(?:body|key|metadata\.[a-z0-9_.-]{1,128})$/, {
        error: "expected body, key or metadata.NAME",
      }),
      types: z
        .array(z.string().regex(/^[a-z0-9!#$&^_.+-]{1,64}\/(?:\*|[a-z0-9!#$&^_.+-]{1,64})$/))
        .min(1)
        .max(32)
        .exactOptional(),
      max_bytes: z.int().min(1).max(EMBED_BYTES_MAX).exactOptional(),
    })
    .exactOptional(),
});

export const putBucketVectorIndex: OperationHandler = async (context) => {
  const { api, bucketName } = context;
  const body = await receiveDocument(context, { bytesMax: DOCUMENT_BYTES_MAX });
  const document = readJsonDocument(body, indexSchema);
  if (
    document.embed !== undefined &&
    !api.embedsByModel &&
    document.dimension !== LEXICAL_DIMENSION
  ) {
    const reason = `dimension: the lexical embedding has ${LEXICAL_DIMENSION}; other models need embedding_url.`;
    throw new S3Error("InvalidArgument", reason);
  }
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
