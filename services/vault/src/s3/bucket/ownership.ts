// Ownership controls.
import { isOwnersAlone, readKeptAcl } from "../../access/acl.ts";
import type { ObjectOwnership } from "../../access/public-access.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerEmpty, answerXml } from "../answer.ts";
import { getBucket, getOwner, type OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { malformedXml, parseXml, tag, wrap, xmlDocument } from "../wire/xml.ts";

const VALUES: ReadonlySet<string> = new Set([
  "BucketOwnerEnforced",
  "BucketOwnerPreferred",
  "ObjectWriter",
]);

/** An ownership by its name; InvalidArgument for others. */
export function checkOwnership(text: string): ObjectOwnership {
  if (!VALUES.has(text))
    throw new S3Error("InvalidArgument", "Invalid x-amz-object-ownership header");
  return text as ObjectOwnership;
}

/** GetBucketOwnershipControls */
export const getBucketOwnershipControls: OperationHandler = (context) => {
  const kept = getBucket(context).settings.ownership as { objectOwnership: string } | undefined;
  if (kept === undefined) throw new S3Error("OwnershipControlsNotFoundError");
  return answerXml(
    xmlDocument("OwnershipControls", wrap("Rule", tag("ObjectOwnership", kept.objectOwnership))),
  );
};

/** PutBucketOwnershipControls */
export const putBucketOwnershipControls: OperationHandler = async (context) => {
  const body = await receiveDocument(context);
  const root = parseXml(body, "OwnershipControls");
  root.allow("Rule");
  const rules = root.list("Rule");
  for (const rule of rules) rule.allow("ObjectOwnership");
  const text = rules[0]?.getText("ObjectOwnership") ?? "";
  if (rules.length !== 1 || !VALUES.has(text))
    throw malformedXml("it has not exactly one known rule");
  const acl = readKeptAcl(getBucket(context).settings.acl);
  const isShared = acl !== undefined && !isOwnersAlone(acl, getOwner(context.api));
  if (text === "BucketOwnerEnforced" && isShared) {
    throw new S3Error("InvalidBucketAclWithObjectOwnership");
  }
  await context.api.store.setBucketSetting(context.bucketName, "ownership", {
    objectOwnership: text,
  });
  return answerEmpty(200);
};

/** DeleteBucketOwnershipControls */
export const deleteBucketOwnershipControls: OperationHandler = async (context) => {
  await context.api.store.deleteBucketSetting(context.bucketName, "ownership");
  return answerEmpty();
};
