// Default encryption of buckets.
import { S3Error } from "../../model/s3-error.ts";
import { answerEmpty, answerXml } from "../answer.ts";
import { getBucket, type OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { malformedXml, parseXml, tag, wrap, xmlDocument, type XmlElement } from "../wire/xml.ts";

/** GetBucketEncryption */
export const getBucketEncryption: OperationHandler = (context) => {
  const kept = getBucket(context).settings.encryption as { bucketKeyEnabled?: boolean } | undefined;
  if (kept === undefined) throw new S3Error("ServerSideEncryptionConfigurationNotFoundError");
  const rule = wrap("ApplyServerSideEncryptionByDefault", tag("SSEAlgorithm", "AES256"));
  const inner = wrap("Rule", rule + tag("BucketKeyEnabled", kept.bucketKeyEnabled ?? false));
  return answerXml(xmlDocument("ServerSideEncryptionConfiguration", inner));
};

/** PutBucketEncryption */
export const putBucketEncryption: OperationHandler = async (context) => {
  const body = await receiveDocument(context);
  const root = parseXml(body, "ServerSideEncryptionConfiguration");
  root.allow("Rule");
  const rules = root.list("Rule");
  rules[0]?.allow(
    "ApplyServerSideEncryptionByDefault",
    "BucketKeyEnabled",
    "BlockedEncryptionTypes",
  );
  const byDefault = rules[0]?.find("ApplyServerSideEncryptionByDefault");
  if (rules.length !== 1 || byDefault === undefined)
    throw malformedXml("it has not exactly one rule");
  byDefault.allow("SSEAlgorithm", "KMSMasterKeyID");
  const algorithm = byDefault.getText("SSEAlgorithm");
  if (algorithm.startsWith("aws:")) {
    throw new S3Error(
      "NotImplemented",
      "Encryption with a key management service is not implemented.",
    );
  }
  if (algorithm !== "AES256") throw new S3Error("InvalidEncryptionAlgorithmError");
  if (byDefault.findText("KMSMasterKeyID") !== undefined) {
    throw new S3Error(
      "InvalidArgument",
      "a KMSMasterKeyID is not applicable if the default sse algorithm is not aws:kms",
    );
  }
  const bucketKeyEnabled = readSwitch(rules[0]!);
  const document = { algorithm, bucketKeyEnabled };
  await context.api.store.setBucketSetting(context.bucketName, "encryption", document);
  return answerEmpty(200);
};

/** DeleteBucketEncryption */
export const deleteBucketEncryption: OperationHandler = async (context) => {
  await context.api.store.deleteBucketSetting(context.bucketName, "encryption");
  return answerEmpty();
};

// It says how keys of a key management service are used: without one it changes nothing, and is told as it was put.
function readSwitch(rule: XmlElement): boolean {
  const text = rule.findText("BucketKeyEnabled")?.trim().toLowerCase() ?? "false";
  if (text !== "true" && text !== "false")
    throw malformedXml("BucketKeyEnabled is neither true nor false");
  return text === "true";
}
