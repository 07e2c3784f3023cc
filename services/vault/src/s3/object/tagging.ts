// GetObjectTagging, PutObjectTagging and DeleteObjectTagging
import { answerEmpty, answerXml } from "../answer.ts";
import { authorize, toTagValues } from "../authorization.ts";
import type { OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { formatTagging, OBJECT_TAGS_MAX, parseTagging } from "../tagging-document.ts";
import { getAddress, getVersionHeaders } from "./address.ts";
import { describeObject } from "./describe.ts";
import { getReplicaOrigin } from "./replica.ts";

const TAGGING_BYTES_MAX = 65_536;

export const getObjectTagging: OperationHandler = async (context) => {
  const object = await describeObject(context);
  return answerXml(formatTagging(object.tags), getVersionHeaders(context, object.versionId));
};

/** PutObjectTagging: policies may use the tags, so the request is authorized after its body is read. */
export const putObjectTagging: OperationHandler = async (context) => {
  const body = await receiveDocument(context, {
    bytesMax: TAGGING_BYTES_MAX,
  });
  const tags = parseTagging(body, OBJECT_TAGS_MAX);
  await authorize(context, toTagValues(tags));
  const origin = await getReplicaOrigin(context, "s3:ReplicateTags");
  const done = await context.api.store.objects.setTags(
    getAddress(context),
    tags,
    origin,
    context.submit,
  );
  return answerEmpty(200, getVersionHeaders(context, done.versionId));
};

export const deleteObjectTagging: OperationHandler = async (context) => {
  const origin = await getReplicaOrigin(context, "s3:ReplicateTags");
  const done = await context.api.store.objects.setTags(
    getAddress(context),
    {},
    origin,
    context.submit,
  );
  return answerEmpty(204, getVersionHeaders(context, done.versionId));
};
