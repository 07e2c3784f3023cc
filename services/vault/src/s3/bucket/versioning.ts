// GetBucketVersioning and PutBucketVersioning
import { S3Error } from "../../model/s3-error.ts";
import { answerEmpty, answerXml, type Header } from "../answer.ts";
import { getBucket, type OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { malformedXml, parseXml, tag, xmlDocument } from "../wire/xml.ts";

/** GetBucketVersioning; without a Status until versioning is configured for the first time. */
export const getBucketVersioning: OperationHandler = (context) => {
  const { versioning } = getBucket(context);
  const status = versioning === "Unset" ? undefined : versioning;
  // Stores that replicate to this one look for it.
  const headers: Header[] = [["x-store-source-versions", "accepted"]];
  return answerXml(xmlDocument("VersioningConfiguration", tag("Status", status)), headers);
};

export const putBucketVersioning: OperationHandler = async (context) => {
  const root = parseXml(await receiveDocument(context), "VersioningConfiguration");
  root.allow("Status", "MfaDelete");
  const status = root.findText("Status");
  const mfaDelete = root.findText("MfaDelete") ?? "Disabled";
  if (mfaDelete === "Enabled") {
    throw new S3Error("NotImplemented", "MFA delete is not implemented.");
  }
  if (mfaDelete !== "Disabled") throw malformedXml("MfaDelete is neither Enabled nor Disabled");
  if (status === undefined) throw new S3Error("IllegalVersioningConfigurationException");
  if (status !== "Enabled" && status !== "Suspended")
    throw malformedXml("Status must be Enabled or Suspended", ["Status"]);
  const { api, bucketName, expectedBucket } = context;
  await api.store.buckets.setVersioning(bucketName, status, expectedBucket);
  return answerEmpty(200);
};
