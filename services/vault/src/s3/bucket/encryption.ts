// Default encryption of buckets.
import { parseKeyReference } from "../../keys/key-name.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerXml } from "../answer.ts";
import { receiveDocument } from "../payload.ts";
import { defineSetting } from "./setting.ts";
import { malformedXml, parseXml, tag, wrap, xmlDocument, type XmlElement } from "../wire/xml.ts";

/** The operations of the default encryption. */
export const encryptionSetting = defineSetting<"encryption">({
  kind: "encryption",
  missing: "ServerSideEncryptionConfigurationNotFoundError",
  receive: async (context) => {
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
      throw malformedXml("it must have exactly one rule");
    byDefault.allow("SSEAlgorithm", "KMSMasterKeyID");
    const algorithm = byDefault.getText("SSEAlgorithm");
    const keyId = byDefault.findText("KMSMasterKeyID")?.trim();
    const bucketKeyEnabled = readSwitch(rules[0]!);
    if (algorithm === "aws:kms") {
      // As in the cloud, the key need not exist before the first object.
      if (keyId !== undefined) parseKeyReference(keyId);
      return { algorithm, ...(keyId === undefined ? {} : { keyId }), bucketKeyEnabled };
    }
    if (algorithm === "aws:kms:dsse")
      throw new S3Error("NotImplemented", "Encryption with aws:kms:dsse is not implemented.");
    if (algorithm !== "AES256") throw new S3Error("InvalidEncryptionAlgorithmError");
    if (keyId !== undefined) {
      throw new S3Error(
        "InvalidArgument",
        "a KMSMasterKeyID is not applicable if the default sse algorithm is not aws:kms",
      );
    }
    return { algorithm, bucketKeyEnabled };
  },
  answer: ({ algorithm, keyId, bucketKeyEnabled = false }) => {
    const inDefault = tag("SSEAlgorithm", algorithm) + tag("KMSMasterKeyID", keyId);
    const rule = wrap("ApplyServerSideEncryptionByDefault", inDefault);
    const inner = wrap("Rule", rule + tag("BucketKeyEnabled", bucketKeyEnabled));
    return answerXml(xmlDocument("ServerSideEncryptionConfiguration", inner));
  },
});

// It saves requests to a key service in the cloud. Here it has no effect, and is returned as it was put.
function readSwitch(rule: XmlElement): boolean {
  const text = rule.findText("BucketKeyEnabled")?.trim().toLowerCase() ?? "false";
  if (text !== "true" && text !== "false")
    throw malformedXml("BucketKeyEnabled must be true or false");
  return text === "true";
}
