// GetObjectAcl and PutObjectAcl
import { formatAcl, receiveAcl } from "../acl-document.ts";
import { answerEmpty, answerXml } from "../answer.ts";
import { getBucket, getOwner, type OperationHandler } from "../context.ts";
import { getAddress, getVersionHeaders } from "./address.ts";
import { describeObject } from "./describe.ts";
import { getReplicaOrigin } from "./replica.ts";

export const getObjectAcl: OperationHandler = async (context) => {
  const object = await describeObject(context);
  const owner = object.owner ?? getOwner(context.api);
  const document = formatAcl(object.acl, owner, getBucket(context));
  return answerXml(document, getVersionHeaders(context, object.versionId));
};

export const putObjectAcl: OperationHandler = async (context) => {
  const acl = await receiveAcl(context);
  const origin = await getReplicaOrigin(context, "s3:ReplicateObject");
  const done = await context.api.store.objects.setAcl(getAddress(context), acl, origin);
  return answerEmpty(200, getVersionHeaders(context, done.versionId));
};
