// GetObjectAcl and PutObjectAcl
import { S3Error } from "../../wire/error.ts";
import { formatAcl, parseAcl, readAclFields } from "../acl-document.ts";
import { answerEmpty, answerXml } from "../answer.ts";
import { getActor, getBucket, getOwner } from "../context.ts";
import type { OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { getAddress, getVersionHeaders } from "./address.ts";

/** GetObjectAcl */
export const getObjectAcl: OperationHandler = async (context) => {
  const { object } = await context.api.store.headObject(getAddress(context));
  const document = formatAcl(object.acl, object.owner ?? getOwner(context.api));
  return answerXml(document, getVersionHeaders(context, object.versionId));
};

/** PutObjectAcl */
export const putObjectAcl: OperationHandler = async (context) => {
  const { api, fields } = context;
  const bucket = getBucket(context);
  const body = await receiveDocument(context.request, context.payload);
  const byFields = readAclFields(fields, bucket, getOwner(api));
  if (byFields !== undefined && body.length > 0) throw new S3Error("UnexpectedContent");
  if (byFields === undefined && body.length === 0) {
    throw new S3Error("MissingSecurityHeader", { elements: [["MissingHeaderName", "x-amz-acl"]] });
  }
  const acl = byFields ?? parseAcl(body, bucket);
  const done = await api.store.setObjectAcl(getAddress(context), acl, getActor(context));
  return answerEmpty(200, getVersionHeaders(context, done.versionId));
};
