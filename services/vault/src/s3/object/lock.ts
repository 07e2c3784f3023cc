// Retention and legal hold of object versions.
import type { ObjectInfo } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerEmpty, answerXml } from "../answer.ts";
import { authorize, requirePermission, toLockValues } from "../authorization.ts";
import { getBucket, type OperationContext, type OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { parseXml, tag, xmlDocument, type XmlElement } from "../wire/xml.ts";
import { getAddress } from "./address.ts";
import { checkRetention, isTimestamp } from "./attributes-in.ts";
import { describeObject } from "./describe.ts";
import { getReplicaOrigin } from "./replica.ts";

const LOCK_BYTES_MAX = 65_536;

export const getObjectRetention: OperationHandler = async (context) => {
  const object = await describeLockable(context);
  if (object.retention === undefined) throw new S3Error("NoSuchObjectLockConfiguration");
  const { mode, untilMs } = object.retention;
  const inner = tag("Mode", mode) + tag("RetainUntilDate", new Date(untilMs).toISOString());
  return answerXml(xmlDocument("Retention", inner));
};

/** PutObjectRetention: policies may use the retention, so the request is authorized after its body is read. */
export const putObjectRetention: OperationHandler = async (context) => {
  const { api, fields, bucket, bucketName, key } = context;
  const root = await receiveLock(context, "Retention");
  const mode = root.findText("Mode");
  const until = root.findText("RetainUntilDate");
  await authorize(context, toLockValues({ mode, until }, api.clock.now()));
  requireLock(context);
  if ((mode === undefined) !== (until === undefined)) throw new S3Error("MalformedXML");
  const retention = mode === undefined ? undefined : readRetention(mode, until!, api.clock.now());
  const bypassGovernance =
    fields.get("x-amz-bypass-governance-retention")?.toLowerCase() === "true";
  if (bypassGovernance) {
    const action = "s3:BypassGovernanceRetention";
    await requirePermission(context, { action, bucket, bucketName, key });
  }
  await api.store.objects.setRetention(getAddress(context), retention, {
    ...(await getReplicaOrigin(context, "s3:ReplicateObject")),
    bypassGovernance,
  });
  return answerEmpty(200);
};

export const getObjectLegalHold: OperationHandler = async (context) => {
  const object = await describeLockable(context);
  if (object.legalHold === undefined) throw new S3Error("NoSuchObjectLockConfiguration");
  return answerXml(xmlDocument("LegalHold", tag("Status", object.legalHold ? "ON" : "OFF")));
};

/** PutObjectLegalHold: policies may use the hold, as with a retention. */
export const putObjectLegalHold: OperationHandler = async (context) => {
  const root = await receiveLock(context, "LegalHold");
  const status = root.getText("Status");
  await authorize(context, toLockValues({ legalHold: status }, context.api.clock.now()));
  requireLock(context);
  if (status !== "ON" && status !== "OFF") throw new S3Error("MalformedXML");
  const { objects } = context.api.store;
  const origin = await getReplicaOrigin(context, "s3:ReplicateObject");
  await objects.setLegalHold(getAddress(context), status === "ON", origin);
  return answerEmpty(200);
};

/** The object of a request, whose bucket must have object lock. */
export async function describeLockable(context: OperationContext): Promise<ObjectInfo> {
  requireLock(context);
  return describeObject(context);
}

async function receiveLock(context: OperationContext, root: string): Promise<XmlElement> {
  const options = { bytesMax: LOCK_BYTES_MAX };
  return parseXml(await receiveDocument(context, options), root);
}

function readRetention(mode: string, until: string, nowMs: number) {
  if (mode !== "GOVERNANCE" && mode !== "COMPLIANCE") throw new S3Error("MalformedXML");
  if (!isTimestamp(until)) throw new S3Error("MalformedXML");
  return checkRetention(mode, until, nowMs);
}

function requireLock(context: OperationContext): void {
  if (!getBucket(context).objectLockEnabled) {
    throw new S3Error("InvalidRequest", "Bucket is missing Object Lock Configuration");
  }
}
