// The replication of a bucket: PutBucketReplication, GetBucketReplication, DeleteBucketReplication, its status, and new attempts.
import { storePrincipal } from "../../access/stored-requester.ts";
import { isOwnBucket } from "../../model/bucket.ts";
import { findGeoRefusal, type GeoPlacement } from "../../model/geo.ts";
import type { ReplicationRule, ReplicationSettings } from "../../model/replication.ts";
import { checkPart, S3Error } from "../../model/s3-error.ts";
import { answerEmpty, answerXml, type S3Answer } from "../answer.ts";
import { checkKeyUse, isPermitted } from "../authorization.ts";
import {
  getBucket,
  type ObjectApi,
  type OperationContext,
  type OperationHandler,
  readVersionId,
} from "../context.ts";
import { answerJson } from "../json-document.ts";
import { receiveDocument } from "../payload.ts";
import { formatDestination, formatReplication, parseReplication } from "../replication-document.ts";

export const putBucketReplication: OperationHandler = async (context) => {
  const { api, bucketName, request, caller, expectedBucket } = context;
  const { role, rules } = parseReplication(await receiveDocument(context));
  if (isOwnBucket(bucketName)) throw new S3Error("AccessDenied");
  const bucket = getBucket(context);
  if (bucket.versioning !== "Enabled")
    throw new S3Error(
      "InvalidRequest",
      "Versioning must be 'Enabled' on the bucket to apply a replication configuration",
    );
  const requester = {
    principals: [storePrincipal(caller)],
    address: request.clientAddress,
    secure: request.secure,
  };
  const { storeId: store } = api.store.remotes;
  const settings: ReplicationSettings = {
    role,
    rules,
    ...(store === "" ? {} : { store }),
    requester,
  };
  for (const [index, rule] of rules.entries()) {
    await checkDestination(context, rule).catch((error: unknown) =>
      checkPart(["Rule", index, "Destination", "Bucket"], () => {
        throw error;
      }),
    );
  }
  await api.store.buckets.setSetting(bucketName, "replication", settings, expectedBucket);
  const before = bucket.settings.replication?.rules ?? [];
  const existing = rules.filter((rule) => startsExisting(rule, before));
  if (existing.length > 0) await api.replication.startExisting(bucketName, requester);
  return answerEmpty(200);
};

/** With `status`, the state of its rules instead of the document. */
export const getBucketReplication: OperationHandler = (context) => {
  const settings = requireSettings(context);
  if (context.query.has("status")) return answerStatus(context, settings);
  return answerXml(formatReplication(settings));
};

async function answerStatus(
  context: OperationContext,
  settings: ReplicationSettings,
): Promise<S3Answer> {
  return answerJson({ rules: await describeRules(context, settings) });
}

/** The state of each rule: counts of waiting, failed and sent versions, and the age of the oldest that waits. */
export async function describeRules(
  context: OperationContext,
  { rules }: ReplicationSettings = requireSettings(context),
) {
  const { api, bucketName } = context;
  const states = await api.replication.describe(bucketName, rules);
  return states.map(({ rule, ...state }) => ({
    id: rule.id,
    enabled: rule.enabled,
    destination: formatDestination(rule.destination),
    ...state,
  }));
}

/** Waiting versions stay here: their tasks end. */
export const deleteBucketReplication: OperationHandler = async (context) => {
  const { api, bucketName, expectedBucket } = context;
  await api.store.buckets.deleteSetting(bucketName, "replication", expectedBucket);
  return answerEmpty();
};

/** Sends a version again, or for the first time: resynchronization, one version at a time. */
export const initiateReplication: OperationHandler = async (context) => {
  const { api, bucketName, key } = context;
  const version = readVersionId(context.query);
  const operation = {
    type: "initiateReplication",
    bucket: bucketName,
    key,
    version,
    nowMs: api.clock.now(),
  } as const;
  const { rules } = await (context.submit ?? api.replication.submit)(operation);
  return { ...answerJson({ rules }), status: 202 };
};

/** Throws AccessDenied for the destinations of rules that a geo-placement rule does not allow. */
export function requireReplicationAllowed(
  api: ObjectApi,
  rule: GeoPlacement | undefined,
  { destination: { remote } }: ReplicationRule,
): void {
  // A copy in this store stays where it is.
  if (remote === undefined) return;
  const region = api.store.remotes.find(remote)?.settings.region;
  const refusal = findGeoRefusal(undefined, rule, { exit: "replication", region });
  if (refusal !== undefined) throw new S3Error("AccessDenied", refusal);
}

function requireSettings(context: OperationContext): ReplicationSettings {
  const { replication } = getBucket(context).settings;
  if (replication !== undefined) return replication;
  throw new S3Error("ReplicationConfigurationNotFoundError");
}

// A rule that was not there, or did not send them.
function startsExisting(rule: ReplicationRule, before: readonly ReplicationRule[]): boolean {
  if (!rule.enabled || !rule.existingObjects) return false;
  const known = before.find(({ id }) => id === rule.id);
  const isSame =
    known?.enabled === true &&
    known.existingObjects &&
    JSON.stringify(known.destination) === JSON.stringify(rule.destination);
  return !isSame;
}

async function checkDestination(context: OperationContext, rule: ReplicationRule): Promise<void> {
  const { api } = context;
  requireReplicationAllowed(api, getBucket(context).settings.geoPlacement, rule);
  const { remote, bucket, keyId } = rule.destination;
  if (remote !== undefined) {
    await checkRemote(context, remote, bucket);
    return;
  }
  await checkLocal(context, bucket);
  // A key of a remote is its own matter.
  if (keyId !== undefined)
    checkKeyUse(context, "kms:GenerateDataKey")(api.store.keys.requireKey(keyId));
}

async function checkLocal(context: OperationContext, name: string): Promise<void> {
  const { api, bucketName } = context;
  if (name === bucketName)
    throw new S3Error("InvalidRequest", "A bucket cannot be replicated to itself.");
  const bucket = api.store.buckets.find(name);
  const action = "s3:ReplicateObject";
  const subject = { bucket, bucketName: name, key: "*", action };
  const isMissing = bucket === undefined || isOwnBucket(name);
  if (isMissing || !(await isPermitted(context, subject)))
    throw new S3Error("InvalidRequest", `Destination bucket must exist: ${name}`);
  if (bucket.versioning !== "Enabled")
    throw new S3Error("InvalidRequest", "Destination bucket must have versioning enabled.");
  if (getBucket(context).objectLockEnabled && !bucket.objectLockEnabled)
    throw new S3Error("InvalidRequest", "Destination bucket must have object lock enabled.");
}

// The same answer for a remote that does not exist and one that is for other buckets.
async function checkRemote(context: OperationContext, name: string, bucket: string): Promise<void> {
  const { api, caller, bucketName } = context;
  const { remotes } = api.store;
  const isAllowed =
    caller.kind === "root" ? remotes.find(name) !== undefined : remotes.allows(name, bucketName);
  if (!isAllowed)
    throw new S3Error("InvalidArgument", `there is no remote ${name} for this bucket`);
  const found = await api.replication.inspect(name, bucket);
  if (found.versioning !== "Enabled")
    throw new S3Error("InvalidRequest", "Destination bucket must have versioning enabled.");
  if (getBucket(context).objectLockEnabled && !found.objectLockEnabled)
    throw new S3Error("InvalidRequest", "Destination bucket must have object lock enabled.");
}
