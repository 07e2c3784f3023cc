// DeleteObject and DeleteObjects
import { setImmediate } from "node:timers/promises";
import type { UnknownParts } from "../../access/policy.ts";
import type { DeleteRequest, DeleteResult } from "../../model/object.ts";
import type { ReplicaSource } from "../../model/replication.ts";
import { S3Error } from "../../model/s3-error.ts";
import type { StoreError } from "../../model/store-error.ts";
import { answerEmpty, answerXml, type Header, toS3Error } from "../answer.ts";
import { authorizeAhead, isPermitted, requirePermission } from "../authorization.ts";
import {
  getActor,
  getBucket,
  isVersionId,
  type OperationContext,
  type OperationHandler,
} from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { parseXml, tag, wrap, xmlDocument, type XmlElement } from "../wire/xml.ts";
import { getAddress } from "./address.ts";
import { readStrongEtags } from "./conditions.ts";
import { readReplicaSource } from "./replica.ts";

const ASKED_AT_ONCE = 50;
const KEYS_MAX = 1_000;
const BODY_BYTES_MAX = 4 * 1024 ** 2;

export const deleteObject: OperationHandler = async (context) => {
  const { fields } = context;
  const request: DeleteRequest = {
    ...getAddress(context),
    bypassGovernance: await readBypass(context),
    actor: getActor(context),
  };
  const conditions = readDeleteConditions({
    ifMatch: fields.get("if-match"),
    modified: fields.get("x-amz-if-match-last-modified-time"),
    size: fields.get("x-amz-if-match-size"),
  });
  if (conditions !== undefined) request.conditions = conditions;
  const source = await readReplicaSource(context, "s3:ReplicateDelete");
  if (source !== undefined) request.source = requireMarker(request, source);
  const result = await context.api.store.objects.delete(request, context.submit);
  const headers: Header[] = [];
  if (result.deleteMarker) headers.push(["x-amz-delete-marker", "true"]);
  if (result.versionId !== undefined && getBucket(context).versioning !== "Unset") {
    headers.push(["x-amz-version-id", result.versionId]);
  }
  return answerEmpty(204, headers);
};

// Replication sends delete markers, and never the deletion of a version.
function requireMarker({ versionId }: DeleteRequest, source: ReplicaSource): ReplicaSource {
  if (versionId === undefined) return source;
  throw new S3Error("InvalidRequest", "Replication does not delete versions.");
}

/** The parts of a deletion that each item of a list names. */
export const NAMED_BY_ITEM: UnknownParts = {
  resource: "key",
  values: ["s3:versionid", "s3:existingobjecttag/"],
};

/**
 * DeleteObjects: each key is authorized separately, the request as a whole is not. As in S3, callers with a key get an error
 * for each object that they may not delete; those that may delete nothing learn no more about the body.
 */
export const deleteObjects: OperationHandler = async (context) => {
  const refusal = await findRefusalAhead(context);
  if (refusal !== undefined && context.caller.kind === "anonymous") throw refusal;
  const { requests, isQuiet } = await receiveRequests(context).catch((error: unknown) => {
    throw refusal !== undefined && error instanceof S3Error ? refusal : error;
  });
  const refusals: (S3Error | undefined)[] = [];
  for (const [index, request] of requests.entries()) {
    // Checking a long policy for a thousand keys takes a while, so it yields in between.
    if (index % ASKED_AT_ONCE === ASKED_AT_ONCE - 1) await setImmediate();
    refusals.push(await findRefusal(context, request));
  }
  const results = await context.api.store.objects.deleteMany(
    requests.filter((_, index) => refusals[index] === undefined),
  );
  let at = 0;
  const rows = requests.map((request, index) => {
    const result = refusals[index] ?? results[at++]!;
    return formatResult(context, request, result, isQuiet);
  });
  return answerXml(xmlDocument("DeleteResult", rows.join("")));
};

// The error of callers that may delete nothing in the bucket.
async function findRefusalAhead(context: OperationContext): Promise<S3Error | undefined> {
  try {
    await authorizeAhead(context, NAMED_BY_ITEM);
    return undefined;
  } catch (error) {
    if (error instanceof S3Error) return error;
    throw error;
  }
}

async function receiveRequests(context: OperationContext) {
  const root = parseXml(await receiveDocument(context, { bytesMax: BODY_BYTES_MAX }), "Delete");
  const items = root.list("Object");
  if (items.length === 0 || items.length > KEYS_MAX) throw new S3Error("MalformedXML");
  const bypassGovernance = asksForBypass(context);
  const actor = getActor(context);
  return {
    requests: items.map((item) => ({ ...readItem(item, context), bypassGovernance, actor })),
    isQuiet: root.findText("Quiet")?.toLowerCase() === "true",
  };
}

// The error of a key that is not tried.
async function findRefusal(
  context: OperationContext,
  request: DeleteRequest,
): Promise<S3Error | undefined> {
  if (!(await mayDelete(context, request))) return new S3Error("AccessDenied");
  const { versionId } = request;
  return versionId === undefined || isVersionId(versionId)
    ? undefined
    : new S3Error("NoSuchVersion");
}

async function mayDelete(context: OperationContext, request: DeleteRequest): Promise<boolean> {
  const { bucket, bucketName } = context;
  const { key, versionId } = request;
  const subject = { bucket, bucketName, key, versionId };
  const action = versionId === undefined ? "s3:DeleteObject" : "s3:DeleteObjectVersion";
  const acl = { of: "bucket", permission: "WRITE" } as const;
  if (!(await isPermitted(context, { ...subject, action, acl }))) return false;
  if (request.bypassGovernance !== true) return true;
  return isPermitted(context, { ...subject, action: "s3:BypassGovernanceRetention" });
}

function readItem(item: XmlElement, context: OperationContext): DeleteRequest {
  const key = item.getText("Key");
  if (key === "") throw new S3Error("MalformedXML");
  const versionId = item.findText("VersionId");
  const request: DeleteRequest = { bucket: context.bucketName, key };
  if (versionId !== undefined && versionId !== "") request.versionId = versionId;
  const conditions = readDeleteConditions({
    ifMatch: item.findText("ETag"),
    modified: item.findText("LastModifiedTime"),
    size: item.findText("Size"),
  });
  if (conditions !== undefined) request.conditions = conditions;
  return request;
}

function readDeleteConditions(given: {
  ifMatch: string | undefined;
  modified: string | undefined;
  size: string | undefined;
}): DeleteRequest["conditions"] {
  const conditions: NonNullable<DeleteRequest["conditions"]> = {};
  if (given.ifMatch !== undefined) conditions.ifMatch = readStrongEtags(given.ifMatch)[0] ?? "";
  if (given.modified !== undefined) {
    const ifModifiedMs = Date.parse(given.modified);
    if (Number.isNaN(ifModifiedMs)) throw new S3Error("InvalidArgument");
    conditions.ifModifiedMs = ifModifiedMs;
  }
  if (given.size !== undefined) {
    if (!/^\d{1,15}$/.test(given.size)) throw new S3Error("InvalidArgument");
    conditions.ifSizeBytes = Number(given.size);
  }
  return Object.keys(conditions).length === 0 ? undefined : conditions;
}

function formatResult(
  context: OperationContext,
  request: DeleteRequest,
  result: DeleteResult | StoreError | S3Error,
  isQuiet: boolean,
): string {
  const named = tag("Key", request.key) + tag("VersionId", request.versionId);
  if (result instanceof Error) {
    const error = toS3Error(result);
    return wrap("Error", named + tag("Code", error.code) + tag("Message", error.message));
  }
  if (isQuiet) return "";
  if (!result.deleteMarker || getBucket(context).versioning === "Unset")
    return wrap("Deleted", named);
  return wrap(
    "Deleted",
    named + tag("DeleteMarker", "true") + tag("DeleteMarkerVersionId", result.versionId),
  );
}

async function readBypass(context: OperationContext): Promise<boolean> {
  if (!asksForBypass(context)) return false;
  const { bucket, bucketName, key } = context;
  const action = "s3:BypassGovernanceRetention";
  await requirePermission(context, { action, bucket, bucketName, key });
  return true;
}

function asksForBypass({ fields }: OperationContext): boolean {
  return fields.get("x-amz-bypass-governance-retention")?.toLowerCase() === "true";
}
