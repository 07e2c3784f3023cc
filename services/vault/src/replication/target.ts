// Destinations of versions: a bucket of a remote, or of this store.
import { createHash } from "node:crypto";
import { S3ClientError } from "@platform/s3";
import type { ObjectInfo } from "../model/object.ts";
import type { BoundedRetry } from "../model/task.ts";
import type { ReplicatedAttribute, ReplicationRule } from "../model/replication.ts";

/** A version to send. */
export interface SentVersion {
  readonly rule: ReplicationRule;
  readonly bucket: string;
  readonly key: string;
  /** Its id in this store. */
  readonly versionId: string;
  readonly modifiedMs: number;
  /** The id of its replica, in stores that take it. */
  readonly replicaId: string;
  /** `undefined` for a delete marker. */
  readonly object: ObjectInfo | undefined;
  /** It may be there already. */
  readonly isChecked: boolean;
}

/** A bucket that versions are sent to. All methods throw a {@link ReplicationFault} for what the destination refuses. */
export interface ReplicationTarget {
  /** Sends a version with all attributes. Returns its id there; `undefined` if the destination gives none. */
  send(version: SentVersion, signal: AbortSignal): Promise<string | undefined>;
  /** Sends attributes of a version that is there. */
  change(
    version: SentVersion & { readonly object: ObjectInfo },
    there: string,
    attributes: readonly ReplicatedAttribute[],
    signal: AbortSignal,
  ): Promise<void>;
  /** True if the newest version there is the one that has arrived last. */
  readonly isOrderedByArrival: boolean;
}

/** True if a rule sends changes of an attribute. */
export function isSent({ destination }: ReplicationRule, attribute: ReplicatedAttribute): boolean {
  return attribute !== "acl" || destination.ownsReplicas !== true;
}

/** A version that a destination did not answer about waits no longer: the destination itself is tried once in a while. */
const OUTAGE_MS_MAX = 60_000;

/** A failure of a destination. */
export class ReplicationFault extends Error implements BoundedRetry {
  override readonly name = "ReplicationFault";
  /** It may work later as it is: tried again for ever. Otherwise the version is FAILED, and tried once an hour. */
  readonly isTransient: boolean;
  /** The destination as a whole does not answer. */
  readonly isOutage: boolean;
  readonly retryMsMax: number | undefined;

  constructor(reason: string, kind: "outage" | "transient" | "refused", options?: ErrorOptions) {
    super(reason, options);
    this.isTransient = kind !== "refused";
    this.isOutage = kind === "outage";
    this.retryMsMax = this.isOutage ? OUTAGE_MS_MAX : undefined;
  }
}

/** The fault in an error of the client of a remote; other errors as they are. */
export function toFault(error: unknown): unknown {
  if (!(error instanceof S3ClientError)) return error;
  const isOutage = error.isOutage || error.code === "circuit_open";
  const isTransient = error.isTransient || error.code === "busy" || error.code === "aborted";
  const kind = isOutage ? "outage" : isTransient ? "transient" : "refused";
  return new ReplicationFault(error.message, kind, { cause: error });
}

/**
 * The id of the replica of a version: its own. The null version, which each bucket has once, gets one that depends on what it
 * is, so that it is sent once.
 */
export function nameReplica(
  store: string,
  {
    bucket,
    key,
    versionId,
    etag,
    modifiedMs,
  }: Pick<ObjectInfo, "bucket" | "key" | "versionId" | "etag" | "modifiedMs">,
): string {
  if (versionId !== "null") return versionId;
  const parts = JSON.stringify([store, bucket, key, etag, modifiedMs]);
  return createHash("sha256").update(parts).digest().subarray(0, 24).toString("base64url");
}
