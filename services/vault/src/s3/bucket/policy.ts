// Bucket policies.
import { checkPolicyActions, compilePolicy } from "../../access/policy.ts";
import { readPublicAccessBlock } from "../../access/public-access.ts";
import type { OpaqueDocument } from "../../model/bucket.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerEmpty, answerXml } from "../answer.ts";
import { getBucket, type OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { tag, xmlDocument } from "../wire/xml.ts";

/** GetBucketPolicy */
export const getBucketPolicy: OperationHandler = (context) => {
  const { policy } = getBucket(context).settings;
  if (policy === undefined) throw new S3Error("NoSuchBucketPolicy");
  return {
    status: 200,
    headers: [["Content-Type", "application/json"]],
    body: JSON.stringify(policy),
  };
};

/** PutBucketPolicy */
export const putBucketPolicy: OperationHandler = async (context) => {
  const { api, bucketName } = context;
  const body = await receiveDocument(context);
  let document: unknown;
  try {
    document = JSON.parse(body.toString("utf8"));
  } catch {
    throw new S3Error(
      "MalformedPolicy",
      "Policies must be valid JSON and the first byte must be '{'",
    );
  }
  const policy = compilePolicy(document, bucketName);
  checkPolicyActions(document, bucketName);
  if (policy.isPublic && readPublicAccessBlock(getBucket(context)).blockPublicPolicy) {
    throw new S3Error(
      "AccessDenied",
      "Public policies are blocked by the bucket's public access block.",
    );
  }
  await api.store.setBucketSetting(bucketName, "policy", document as OpaqueDocument);
  return answerEmpty();
};

/** DeleteBucketPolicy */
export const deleteBucketPolicy: OperationHandler = async (context) => {
  await context.api.store.deleteBucketSetting(context.bucketName, "policy");
  return answerEmpty();
};

/** GetBucketPolicyStatus */
export const getBucketPolicyStatus: OperationHandler = (context) => {
  const policy = context.api.authorizer.getBucketPolicy(getBucket(context));
  if (policy === undefined) throw new S3Error("NoSuchBucketPolicy");
  return answerXml(xmlDocument("PolicyStatus", tag("IsPublic", policy.isPublic)));
};
