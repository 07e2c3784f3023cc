// Object lock of buckets.
import type { ObjectLockConfiguration } from "../../model/lock.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerEmpty, answerXml } from "../answer.ts";
import { getBucket, type OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { malformedXml, parseXml, tag, wrap, xmlDocument, type XmlElement } from "../wire/xml.ts";

const DAYS_MAX = 36_500;
const YEARS_MAX = 100;

export const getObjectLockConfiguration: OperationHandler = (context) => {
  const bucket = getBucket(context);
  if (!bucket.objectLockEnabled) throw new S3Error("ObjectLockConfigurationNotFoundError");
  const retention = bucket.settings.objectLock?.defaultRetention;
  const period =
    retention === undefined
      ? ""
      : "days" in retention
        ? tag("Days", retention.days)
        : tag("Years", retention.years);
  const rule =
    retention === undefined
      ? ""
      : wrap("Rule", wrap("DefaultRetention", tag("Mode", retention.mode) + period));
  return answerXml(
    xmlDocument("ObjectLockConfiguration", tag("ObjectLockEnabled", "Enabled") + rule),
  );
};

export const putObjectLockConfiguration: OperationHandler = async (context) => {
  const root = parseXml(await receiveDocument(context), "ObjectLockConfiguration");
  root.allow("ObjectLockEnabled", "Rule");
  if (root.getText("ObjectLockEnabled") !== "Enabled") throw new S3Error("MalformedXML");
  const bucket = getBucket(context);
  if (bucket.versioning !== "Enabled") {
    throw new S3Error(
      "InvalidBucketState",
      "Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration",
    );
  }
  const document: ObjectLockConfiguration = {};
  root.read("Rule", (rule) => {
    rule.allow("DefaultRetention");
    const retention = rule.read("DefaultRetention", readRetention);
    if (retention === undefined) throw new S3Error("MalformedXML");
    document.defaultRetention = retention;
  });
  const { api, bucketName, expectedBucket } = context;
  await api.store.buckets.setSetting(bucketName, "objectLock", document, expectedBucket);
  return answerEmpty(200);
};

function readRetention(item: XmlElement): NonNullable<ObjectLockConfiguration["defaultRetention"]> {
  item.allow("Mode", "Days", "Years");
  const mode = item.getText("Mode");
  if (mode !== "GOVERNANCE" && mode !== "COMPLIANCE")
    throw malformedXml("Mode must be GOVERNANCE or COMPLIANCE", ["Mode"]);
  const days = item.findText("Days");
  const years = item.findText("Years");
  if ((days === undefined) === (years === undefined))
    throw malformedXml("DefaultRetention must have either Days or Years");
  const text = (days ?? years)!.trim();
  const value = /^[+-]?\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  const max = days === undefined ? YEARS_MAX : DAYS_MAX;
  const path = [days === undefined ? "Years" : "Days"];
  if (!Number.isInteger(value) || value < 1) {
    const message = "Default retention period must be a positive integer value.";
    throw new S3Error("InvalidArgument", { message, path });
  }
  if (value > max) {
    throw new S3Error("InvalidArgument", {
      message: "Default retention period is too large.",
      path,
    });
  }
  return days === undefined ? { mode, years: value } : { mode, days: value };
}
