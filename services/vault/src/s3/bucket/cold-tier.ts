// The cold tier of a bucket: PutBucketColdTier, GetBucketColdTier, DeleteBucketColdTier, and sweeps
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { isReservedBucket } from "../../model/bucket.ts";
import type { ColdTier } from "../../model/bucket-settings.ts";
import { S3Error } from "../../model/s3-error.ts";
import type { Store } from "../../object-store.ts";
import { type Sweep } from "../../upkeep/sweeps.ts";
import { TRANSITION_BYTES_MIN } from "../../upkeep/transition-engine.ts";
import { answerEmpty, type S3Answer } from "../answer.ts";
import { getBucket, type OperationContext, type OperationHandler } from "../context.ts";
import { answerJson, readJsonDocument, requireMatch, tagDocument } from "../json-document.ts";
import { receiveDocument } from "../payload.ts";
import { requireTierAllowed } from "./geo-placement.ts";

const DOCUMENT_BYTES_MAX = 64 * 1024;
/** A sweep that takes longer continues without its request. */
const SWEEP_MS_MAX = 30_000;
const DAYS_MAX = 36_500;
/** Remotes that belong to the cold tier of one bucket; people cannot choose such a name. */
const OWN_REMOTE = "tier.";

const common = {
  days: z.int().min(0).max(DAYS_MAX).exactOptional(),
  prefix: z.string().max(1_024).default(""),
  bucket: z.string().min(3).max(63),
  minimum_size: z.int().min(0).max(Number.MAX_SAFE_INTEGER).default(TRANSITION_BYTES_MIN),
};
/** The document, as it is put. */
export const coldTierSchema = z.union([
  z.strictObject({ ...common, remote: z.string().min(1).max(80) }),
  z.strictObject({
    ...common,
    endpoint: z.string().max(2_048),
    region: z.string().min(1).max(64).default("us-east-1"),
    access_key: z.string().min(1).max(256),
    secret_key: z.string().min(1).max(1_024),
  }),
]);

export const putBucketColdTier: OperationHandler = async (context) => {
  const { api, bucketName } = context;
  const body = await receiveDocument(context, { bytesMax: DOCUMENT_BYTES_MAX });
  const given = readJsonDocument(body, coldTierSchema);
  const expected = requireMatch(context, showTier(context));
  if (isReservedBucket(bucketName)) throw new S3Error("AccessDenied");
  const { prefix, bucket, minimum_size, days } = given;
  const remote =
    "remote" in given ? requireRemote(context, given.remote) : await putOwn(context, given);
  requireTierAllowed(api, getBucket(context).settings.geoPlacement, remote);
  const tier: ColdTier = {
    prefix,
    remote,
    bucket,
    minimum_size,
    ...(days === undefined ? {} : { days }),
  };
  await api.store.buckets.setSetting(bucketName, "coldTier", tier, expected);
  return answerEmpty(200, [["ETag", tagDocument(tier)]]);
};

export const getBucketColdTier: OperationHandler = (context) => {
  const id = context.query.get("sweep");
  if (id !== undefined) {
    const sweep = context.api.store.sweeps.find(context.bucketName, id);
    if (sweep === undefined) throw new S3Error("NoSuchConfiguration", "The sweep does not exist.");
    return answerJson(describeSweep(context, sweep));
  }
  const tier = showTier(context);
  if (tier === undefined) throw new S3Error("NoSuchColdTier");
  return answerJson(tier, [["ETag", tagDocument(tier)]]);
};

/** Objects that were moved stay where they are, and are read from there. */
export const deleteBucketColdTier: OperationHandler = async (context) => {
  const { api, bucketName } = context;
  const expected = requireMatch(context, showTier(context));
  await api.store.buckets.deleteSetting(bucketName, "coldTier", expected);
  return answerEmpty();
};

/** Moves what is due, by the cold tier and by lifecycle rules. Answers when that is done, or after 30 s with its id. */
export const sweepBucketColdTier: OperationHandler = async (context): Promise<S3Answer> => {
  const { sweep, ended } = startSweep(context);
  const stop = new AbortController();
  const timeout = sleep(SWEEP_MS_MAX, undefined, { signal: stop.signal }).catch(() => undefined);
  await Promise.race([ended, timeout]);
  stop.abort();
  return answerJson(describeSweep(context, sweep));
};

/** Starts a sweep of the bucket, or joins the one that is running. Throws NoSuchColdTier or SlowDown. */
export function startSweep(context: OperationContext): { sweep: Sweep; ended: Promise<void> } {
  const { api, bucketName } = context;
  const { lifecycle } = getBucket(context).settings;
  if (showTier(context) === undefined && lifecycle === undefined)
    throw new S3Error("NoSuchColdTier");
  const started = api.store.sweeps.start(bucketName);
  if (started === undefined) throw new S3Error("SlowDown", "Too many sweeps are running.");
  return started;
}

function describeSweep(
  { api }: OperationContext,
  { id, bucket, startedMs, endedMs, report, details, reason }: Sweep,
) {
  const isRunning = endedMs === undefined;
  const blocked = listBlocked(api.store, bucket);
  return {
    ...report,
    ...(isRunning ? { job_id: id } : {}),
    state: isRunning ? "running" : reason === undefined ? "done" : "failed",
    started_at: new Date(startedMs).toISOString(),
    ...(endedMs === undefined ? {} : { ended_at: new Date(endedMs).toISOString() }),
    ...(reason === undefined ? {} : { reason }),
    ...(blocked.length === 0 ? {} : { blocked }),
    details,
  };
}

/** Transitions of the bucket's lifecycle rules that move nothing, with the reason. */
export function listBlocked({ sweeps }: Pick<Store, "sweeps">, bucket: string) {
  return sweeps.listBlocked(bucket).map(({ rule, storageClass }) => ({
    rule,
    storage_class: storageClass,
    reason: "no remote has this class for the bucket",
  }));
}

function showTier(context: OperationContext): ColdTier | undefined {
  return getBucket(context).settings.coldTier;
}

// The same answer for a remote that does not exist and one that is for other buckets.
function requireRemote({ api, caller, bucketName }: OperationContext, name: string): string {
  const { remotes } = api.store;
  const isAllowed =
    caller.kind === "root" ? remotes.find(name) !== undefined : remotes.allows(name, bucketName);
  if (isAllowed) return name;
  throw new S3Error("InvalidArgument", {
    message: `remote: there is no remote ${name} for this bucket`,
    reason: `there is no remote ${name} for this bucket`,
    path: ["remote"],
  });
}

async function putOwn(
  { api, caller, bucketName }: OperationContext,
  given: { endpoint: string; region: string; access_key: string; secret_key: string },
): Promise<string> {
  if (caller.kind !== "root")
    throw new S3Error("AccessDenied", "Only the root user may name an endpoint: name a remote.");
  const { remotes } = api.store;
  const name = `${OWN_REMOTE}${bucketName}`;
  const { endpoint, region, access_key, secret_key } = given;
  if (remotes.find(name) === undefined) {
    const settings = { name, endpoint, region, access_key, path_style: true, prefix: "" };
    await remotes.add({ ...settings, allow: [], rate_bytes: 0, classes: [] }, secret_key);
  } else await remotes.change(name, { endpoint, region, access_key, secret_key });
  return name;
}
