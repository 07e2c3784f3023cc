// Bucket policies.
import { checkPolicyActions, compilePolicy } from "../../access/policy.ts";
import { readPublicAccessBlock } from "../../access/public-access.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerXml } from "../answer.ts";
import { getBucket, type OperationContext, type OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { defineSetting } from "./setting.ts";
import { tag, xmlDocument } from "../wire/xml.ts";

/** The operations of the bucket policy. */
export const policySetting = defineSetting({
  kind: "policy",
  missing: "NoSuchBucketPolicy",
  receive: async (context) => (await receivePolicy(context)).document,
  answer: (policy) => ({
    status: 200,
    headers: [["Content-Type", "application/json"]],
    body: JSON.stringify(policy),
  }),
  putStatus: 204,
});

/** Receives and validates the policy of a PUT. Throws MalformedPolicy, and AccessDenied for a public one that is blocked. */
export async function receivePolicy(
  context: OperationContext,
): Promise<{ document: object; isPublic: boolean }> {
  const { bucketName } = context;
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
  const { isPublic } = compilePolicy(document, bucketName);
  checkPolicyActions(document, bucketName);
  if (isPublic && readPublicAccessBlock(getBucket(context)).blockPublicPolicy) {
    throw new S3Error(
      "AccessDenied",
      "Public policies are blocked by the bucket's public access block.",
    );
  }
  return { document: document as object, isPublic };
}

export const getBucketPolicyStatus: OperationHandler = (context) => {
  const policy = context.api.authorizer.getBucketPolicy(getBucket(context));
  if (policy === undefined) throw new S3Error("NoSuchBucketPolicy");
  return answerXml(xmlDocument("PolicyStatus", tag("IsPublic", policy.isPublic)));
};
