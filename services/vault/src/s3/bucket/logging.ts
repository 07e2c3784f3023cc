// Server access logs of a bucket: where they go.
// Source: "Enabling Amazon S3 server access logging", "PutBucketLogging".
import { type Bucket, isOwnBucket } from "../../model/bucket.ts";
import type { BucketLogging } from "../../model/bucket-settings.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerEmpty, answerXml } from "../answer.ts";
import { requirePermission } from "../authorization.ts";
import { getBucket, type OperationContext, type OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { malformedXml, parseXml, tag, wrap, xmlDocument, type XmlElement } from "../wire/xml.ts";

/** A key of a log object has at most this much after the prefix. */
const KEY_REST_MAX = 200;
const KEY_BYTES_MAX = 1_024;

export const getBucketLogging: OperationHandler = (context) => {
  const { logging } = getBucket(context).settings;
  const inner = logging === undefined ? "" : wrap("LoggingEnabled", formatTarget(logging));
  return answerXml(xmlDocument("BucketLoggingStatus", inner));
};

/** PutBucketLogging; without `LoggingEnabled` it ends the logging. */
export const putBucketLogging: OperationHandler = async (context) => {
  const { api, bucketName, expectedBucket } = context;
  const root = parseXml(await receiveDocument(context), "BucketLoggingStatus");
  root.allow("LoggingEnabled");
  const enabled = root.find("LoggingEnabled");
  if (enabled === undefined) {
    await api.store.buckets.deleteSetting(bucketName, "logging", expectedBucket);
    return answerEmpty(200);
  }
  const setting = readTarget(enabled);
  await requireTarget(context, setting);
  await api.store.buckets.setSetting(bucketName, "logging", setting, expectedBucket);
  return answerEmpty(200);
};

function readTarget(enabled: XmlElement): BucketLogging {
  enabled.allow("TargetBucket", "TargetPrefix", "TargetGrants", "TargetObjectKeyFormat");
  if (enabled.find("TargetGrants")?.children.length) {
    throw new S3Error(
      "NotImplemented",
      "TargetGrants are not implemented: give access to the logs by the policy of their bucket.",
    );
  }
  const targetPrefix = enabled.getText("TargetPrefix");
  if (Buffer.byteLength(targetPrefix) > KEY_BYTES_MAX - KEY_REST_MAX) {
    throw new S3Error("InvalidArgument", "TargetPrefix is too long for the keys of logs.");
  }
  return {
    targetBucket: enabled.getText("TargetBucket"),
    targetPrefix,
    ...readFormat(enabled.find("TargetObjectKeyFormat")),
  };
}

function readFormat(format: XmlElement | undefined): Pick<BucketLogging, "partitionedBy"> {
  if (format === undefined) return {};
  format.allow("SimplePrefix", "PartitionedPrefix");
  const partitioned = format.find("PartitionedPrefix");
  if ((partitioned === undefined) === (format.find("SimplePrefix") === undefined)) {
    throw malformedXml("TargetObjectKeyFormat is either SimplePrefix or PartitionedPrefix");
  }
  if (partitioned === undefined) return {};
  partitioned.allow("PartitionDateSource");
  const source = partitioned.findText("PartitionDateSource") ?? "EventTime";
  if (source !== "EventTime" && source !== "DeliveryTime") {
    throw malformedXml("PartitionDateSource is neither EventTime nor DeliveryTime");
  }
  return { partitionedBy: source };
}

// Nobody has logs written where they may not write themselves.
async function requireTarget(context: OperationContext, setting: BucketLogging): Promise<void> {
  const { targetBucket, targetPrefix } = setting;
  const target = context.api.store.buckets.find(targetBucket);
  const isUsable = target !== undefined && !isOwnBucket(targetBucket);
  if (!isUsable || target.region !== getBucket(context).region) {
    throw new S3Error("InvalidTargetBucketForLogging", describeFault(target));
  }
  await requirePermission(context, {
    action: "s3:PutObject",
    acl: { of: "bucket", permission: "WRITE" },
    bucket: target,
    bucketName: targetBucket,
    key: `${targetPrefix}log`,
  });
}

function describeFault(target: Bucket | undefined): string {
  if (target === undefined) return "The target bucket for logging does not exist.";
  return isOwnBucket(target.name)
    ? "Only the store itself writes into the target bucket."
    : "The target bucket for logging must be in the same region.";
}

function formatTarget({ targetBucket, targetPrefix, partitionedBy }: BucketLogging): string {
  const format =
    partitionedBy === undefined
      ? ""
      : wrap(
          "TargetObjectKeyFormat",
          wrap("PartitionedPrefix", tag("PartitionDateSource", partitionedBy)),
        );
  return tag("TargetBucket", targetBucket) + tag("TargetPrefix", targetPrefix) + format;
}
