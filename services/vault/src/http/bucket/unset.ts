// Configurations that are not offered, answered as S3 answers where nothing was put.
import { S3Error } from "../../wire/error.ts";
import { tag, xmlDocument } from "../../wire/xml.ts";
import { answerXml } from "../answer.ts";
import type { OperationHandler } from "../context.ts";

/** GetBucketReplication */
export const getBucketReplication: OperationHandler = () => {
  throw new S3Error("ReplicationConfigurationNotFoundError");
};

/** GetBucketLogging */
export const getBucketLogging: OperationHandler = () =>
  answerXml(xmlDocument("BucketLoggingStatus", ""));

/** GetBucketRequestPayment */
export const getBucketRequestPayment: OperationHandler = () =>
  answerXml(xmlDocument("RequestPaymentConfiguration", tag("Payer", "BucketOwner")));

/** GetBucketAccelerateConfiguration */
export const getBucketAccelerateConfiguration: OperationHandler = () =>
  answerXml(xmlDocument("AccelerateConfiguration", ""));
