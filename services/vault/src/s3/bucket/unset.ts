// Unsupported settings: reads answer as S3 does for unset ones, and writes succeed if they change nothing.
import { S3Error } from "../../model/s3-error.ts";
import { answerEmpty, answerXml } from "../answer.ts";
import { getBucket, type OperationContext, type OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import type { SettingHandlers } from "./setting.ts";
import { malformedXml, parseXml, tag, xmlDocument } from "../wire/xml.ts";

export const getBucketRequestPayment: OperationHandler = () =>
  answerXml(xmlDocument("RequestPaymentConfiguration", tag("Payer", "BucketOwner")));

/** PutBucketRequestPayment; only the owner can pay. */
export const putBucketRequestPayment: OperationHandler = async (context) => {
  const body = await receiveDocument(context);
  const payer = parseXml(body, "RequestPaymentConfiguration").getText("Payer");
  if (payer === "BucketOwner") return answerEmpty(200);
  if (payer !== "Requester") throw malformedXml("Payer is neither BucketOwner nor Requester");
  throw new S3Error("NotImplemented", "Payment by who asks is not implemented.");
};

export const getBucketAccelerateConfiguration: OperationHandler = (context) => {
  const kept = getBucket(context).settings.accelerate;
  return answerXml(xmlDocument("AccelerateConfiguration", tag("Status", kept?.status)));
};

/** PutBucketAccelerateConfiguration; acceleration can only be disabled. */
export const putBucketAccelerateConfiguration: OperationHandler = async (context) => {
  const body = await receiveDocument(context);
  const status = parseXml(body, "AccelerateConfiguration").getText("Status");
  if (status === "Suspended") {
    await context.api.store.buckets.setSetting(context.bucketName, "accelerate", { status });
    return answerEmpty(200);
  }
  if (status !== "Enabled") throw malformedXml("Status is neither Enabled nor Suspended");
  throw new S3Error("NotImplemented", "Transfer acceleration is not implemented.");
};

/** The operations of analytics configurations. */
export const analytics = createNamed("ListBucketAnalyticsConfigurationResult", "Analytics");
/** The operations of intelligent tiering configurations. */
export const intelligentTiering = createNamed(
  "ListBucketIntelligentTieringConfigurationsOutput",
  "Intelligent tiering",
);
/** The operations of inventory configurations. */
export const inventory = createNamed("ListInventoryConfigurationsResult", "Inventory");

function createNamed(listRoot: string, what: string): SettingHandlers {
  const refuseId = ({ query }: OperationContext): never => {
    if ((query.get("id") ?? "") === "")
      throw new S3Error("InvalidArgument", "Missing required query parameter: id");
    throw new S3Error("NoSuchConfiguration");
  };
  return {
    get: (context) =>
      context.query.has("id")
        ? refuseId(context)
        : answerXml(xmlDocument(listRoot, tag("IsTruncated", false))),
    put: () => {
      throw new S3Error("NotImplemented", `${what}: not implemented.`);
    },
    delete: refuseId,
  };
}
