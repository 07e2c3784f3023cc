// Requests of replication from another store: a version keeps its id and its time, and a change is not sent back.
import { z } from "zod";
import type { GeoMark } from "../../model/geo.ts";
import type { ChangeOrigin } from "../../model/object.ts";
import type { ReplicaSource } from "../../model/replication.ts";
import { S3Error } from "../../model/s3-error.ts";
import { requirePermission } from "../authorization.ts";
import { getBucket, isVersionId, type OperationContext } from "../context.ts";
import { getChangeOrigin } from "./change-origin.ts";

/** Header of the id that a version has at its source. */
const VERSION_FIELD = "x-amz-source-version-id";
/** Header of the time that it has there, RFC 3339. */
const MODIFIED_FIELD = "x-amz-source-modified";
/** Header of the regions that its bytes may go to: JSON in base64. */
const GEO_FIELD = "x-amz-source-geo";
/** Clocks of stores may differ by this. */
const SKEW_MS_MAX = 15 * 60_000;
const GEO_CHARS_MAX = 16_384;
const REGIONS_MAX = 100;

const geoSchema = z.strictObject({
  allowed: z.array(z.string().max(64)).max(REGIONS_MAX),
  replicates: z.literal(true).exactOptional(),
});

type Action = "s3:ReplicateObject" | "s3:ReplicateDelete" | "s3:ReplicateTags";

/**
 * The source of a new version; `undefined` if the request is not one of replication. Throws AccessDenied without the action,
 * InvalidArgument for other headers, InvalidRequest in a bucket without versions.
 */
export async function readReplicaSource(
  context: OperationContext,
  action: Action,
): Promise<ReplicaSource | undefined> {
  const { fields } = context;
  const versionId = fields.getFilled(VERSION_FIELD);
  if (versionId === undefined) return undefined;
  await requireAction(context, action);
  if (versionId === "null" || !isVersionId(versionId))
    throw new S3Error("InvalidArgument", "x-store-source-version-id is not the id of a version.");
  const modifiedMs = Date.parse(fields.getFilled(MODIFIED_FIELD) ?? "");
  if (Number.isNaN(modifiedMs))
    throw new S3Error("InvalidArgument", "x-store-source-modified is not a time.");
  if (modifiedMs > context.api.clock.now() + SKEW_MS_MAX)
    throw new S3Error("InvalidArgument", "x-store-source-modified is in the future.");
  if (getBucket(context).versioning !== "Enabled")
    throw new S3Error("InvalidRequest", "Replicas require a bucket with versioning enabled.");
  return { versionId, modifiedMs };
}

/** The regions that the bytes of a replica may go to; `undefined` for other requests. */
export function readReplicaGeo({ fields }: OperationContext): GeoMark | undefined {
  const text = fields.getFilled(GEO_FIELD);
  if (text === undefined || !fields.has(VERSION_FIELD)) return undefined;
  try {
    if (text.length > GEO_CHARS_MAX) throw new Error("too long");
    return geoSchema.parse(JSON.parse(Buffer.from(text, "base64").toString("utf8")));
  } catch (cause) {
    throw new S3Error("InvalidArgument", {
      message: "x-store-source-geo is not a list of regions.",
      cause,
    });
  }
}

/** The origin of a change of attributes, which replication may bring. Throws AccessDenied without the action. */
export async function getReplicaOrigin(
  context: OperationContext,
  action: Action,
): Promise<ChangeOrigin> {
  const origin = getChangeOrigin(context);
  if (context.fields.getFilled(VERSION_FIELD) === undefined) return origin;
  await requireAction(context, action);
  return { ...origin, isReplica: true };
}

async function requireAction(context: OperationContext, action: Action): Promise<void> {
  const { bucket, bucketName, key } = context;
  await requirePermission(context, { action, bucket, bucketName, key });
}
