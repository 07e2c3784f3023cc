// Residency of a bucket: PutBucketGeoPlacement, GetBucketGeoPlacement, DeleteBucketGeoPlacement
import { z } from "zod";
import type { Bucket } from "../../model/bucket.ts";
import { findGeoRefusal, type GeoPlacement, isLooser } from "../../model/geo.ts";
import { S3Error } from "../../model/s3-error.ts";
import { findTarget } from "../../upkeep/transition-engine.ts";
import { answerEmpty } from "../answer.ts";
import {
  getBucket,
  type ObjectApi,
  type OperationContext,
  type OperationHandler,
} from "../context.ts";
import { answerJson, readJsonDocument, requireMatch, tagDocument } from "../json-document.ts";
import { receiveDocument } from "../payload.ts";
import { requireReplicationAllowed } from "./replication.ts";

const REGIONS_MAX = 100;
const DOCUMENT_BYTES_MAX = 64 * 1024;
const region = z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/, {
  error: "expected lower-case letters, digits and hyphens",
});
const geoSchema = z.strictObject({
  region,
  allowed: z.array(region).min(1).max(REGIONS_MAX).exactOptional(),
  deny_replication_outside: z.boolean().default(true),
});

export const putGeoPlacement: OperationHandler = async (context) => {
  const { api, bucketName } = context;
  const body = await receiveDocument(context, { bytesMax: DOCUMENT_BYTES_MAX });
  const rule: GeoPlacement = readJsonDocument(body, geoSchema);
  const expected = requireMatch(context, showRule(context));
  requireTightening(context, rule);
  requireTargetsAllowed(api, getBucket(context), rule);
  await api.store.buckets.setSetting(bucketName, "geoPlacement", rule, expected);
  return answerEmpty(200, [["ETag", tagDocument(rule)]]);
};

export const getGeoPlacement: OperationHandler = (context) => {
  const rule = showRule(context);
  if (rule === undefined) throw new S3Error("NoSuchGeoPlacement");
  return answerJson(rule, [["ETag", tagDocument(rule)]]);
};

/** Versions that were written under the rule keep their regions. */
export const deleteGeoPlacement: OperationHandler = async (context) => {
  const { api, bucketName } = context;
  const expected = requireMatch(context, showRule(context));
  requireTightening(context, undefined);
  await api.store.buckets.deleteSetting(bucketName, "geoPlacement", expected);
  return answerEmpty();
};

/** Throws AccessDenied for a remote that the rule of a bucket does not allow. */
export function requireTierAllowed(
  api: ObjectApi,
  rule: GeoPlacement | undefined,
  remote: string,
): void {
  const place = api.store.remotes.find(remote)?.settings.region;
  const refusal = findGeoRefusal(undefined, rule, { exit: "tier", region: place });
  if (refusal !== undefined) throw new S3Error("AccessDenied", refusal);
}

function showRule(context: OperationContext): GeoPlacement | undefined {
  return getBucket(context).settings.geoPlacement;
}

function requireTightening(context: OperationContext, after: GeoPlacement | undefined): void {
  if (context.caller.kind === "root" || !isLooser(showRule(context), after)) return;
  throw new S3Error("AccessDenied", "Only the root user may loosen a geo-placement rule.");
}

// A rule that contradicts settings of the bucket would stop them silently.
function requireTargetsAllowed(api: ObjectApi, bucket: Bucket, rule: GeoPlacement): void {
  const { coldTier, lifecycle, replication } = bucket.settings;
  if (coldTier !== undefined) requireTierAllowed(api, rule, coldTier.remote);
  for (const one of replication?.rules ?? []) requireReplicationAllowed(api, rule, one);
  for (const { transitions = [], noncurrentTransitions = [] } of lifecycle?.rules ?? []) {
    for (const { storageClass } of [...transitions, ...noncurrentTransitions]) {
      const target = findTarget(api.store.remotes, bucket.name, coldTier, storageClass);
      if (target !== undefined) requireTierAllowed(api, rule, target.remote);
    }
  }
}
