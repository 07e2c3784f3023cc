// A bucket of this store as the destination of versions: bytes are shared, ids and times stay.
import type { Authorizer } from "../access/authorizer.ts";
import type { Directory } from "../access/directory.ts";
import { findRequester } from "../access/stored-requester.ts";
import { isOwnBucket } from "../model/bucket.ts";
import type { ObjectInfo } from "../model/object.ts";
import type { ReplicatedAttribute } from "../model/replication.ts";
import type { StoredRequester } from "../model/requester.ts";
import { StoreError } from "../model/store-error.ts";
import type { Store } from "../object-store.ts";
import { ReplicationFault, type ReplicationTarget, type SentVersion } from "./target.ts";

const TRANSIENT: ReadonlySet<string> = new Set([
  "SlowDown",
  "ServiceUnavailable",
  "InsufficientStorage",
  "InternalError",
]);
const MISSING: ReadonlySet<string> = new Set(["NoSuchKey", "NoSuchVersion"]);

/** Options of {@link LocalTarget}. */
export interface LocalTargetOptions {
  readonly store: Store;
  readonly authorizer: Authorizer;
  readonly directory: Directory;
  /** The sender of the rule, with whose present rights the bucket is written. */
  readonly requester: StoredRequester;
  readonly bucket: string;
}

export class LocalTarget implements ReplicationTarget {
  readonly isOrderedByArrival = false;
  readonly #options: LocalTargetOptions;

  constructor(options: LocalTargetOptions) {
    this.#options = options;
  }

  async send(version: SentVersion): Promise<string | undefined> {
    this.#requireRight(version.key);
    const { store, bucket } = this.#options;
    const { key, replicaId } = version;
    const source = { versionId: replicaId, modifiedMs: version.modifiedMs };
    try {
      if (version.object === undefined) await store.objects.delete({ bucket, key, source });
      else await this.#copy(version, version.object, source);
      return replicaId;
    } catch (error) {
      if (error instanceof StoreError && error.code === "OperationAborted") return replicaId;
      throw toFault(error, version);
    }
  }

  async change(
    version: SentVersion & { readonly object: ObjectInfo },
    there: string,
    attributes: readonly ReplicatedAttribute[],
  ): Promise<void> {
    this.#requireRight(version.key);
    const { store, bucket } = this.#options;
    const address = { bucket, key: version.key, versionId: there };
    try {
      for (const attribute of attributes) await this.#change(store, address, version, attribute);
    } catch (error) {
      throw toFault(error);
    }
  }

  async #copy(
    { bucket, key, versionId, rule }: SentVersion,
    object: ObjectInfo,
    source: { versionId: string; modifiedMs: number },
  ): Promise<void> {
    const { store, bucket: target } = this.#options;
    const { owner, acl, retention, legalHold, websiteRedirect, storageClass } = object;
    const wanted = rule.destination.storageClass ?? storageClass;
    const { keyId } = rule.destination;
    await store.copies.copy({
      source: { bucket, key, versionId },
      bucket: target,
      key,
      event: "ObjectCreated:Put",
      attributes: {
        source,
        // A class of remotes is that of the bytes that were moved; the replica is here.
        ...(store.remotes.findClass(wanted, target) === undefined && wanted !== "COLD"
          ? { storageClass: wanted }
          : {}),
        ...(keyId === undefined
          ? {}
          : { encryption: { type: "SSE-KMS", keyId: store.keys.resolve(keyId) } }),
        ...(owner === undefined ? {} : { owner }),
        ...(acl === undefined ? {} : { acl }),
        ...(retention === undefined ? {} : { retention }),
        ...(legalHold === undefined ? {} : { legalHold }),
        ...(websiteRedirect === undefined ? {} : { websiteRedirect }),
      },
    });
  }

  async #change(
    { objects }: Store,
    address: { bucket: string; key: string; versionId: string },
    { object }: SentVersion & { readonly object: ObjectInfo },
    attribute: ReplicatedAttribute,
  ): Promise<void> {
    const origin = { isReplica: true };
    switch (attribute) {
      case "tags":
        await objects.setTags(address, object.tags, origin);
        break;
      case "acl":
        if (object.acl !== undefined) await objects.setAcl(address, object.acl, origin);
        break;
      case "retention":
        await objects.setRetention(address, object.retention, {
          ...origin,
          bypassGovernance: true,
        });
        break;
      case "legalHold":
        await objects.setLegalHold(address, object.legalHold === true, origin);
        break;
      default:
        attribute satisfies never;
    }
  }

  #requireRight(key: string): void {
    const { store, authorizer, directory, requester, bucket: bucketName } = this.#options;
    const bucket = store.buckets.find(bucketName);
    if (bucket === undefined || isOwnBucket(bucketName))
      throw new ReplicationFault(`the bucket ${bucketName} does not exist`, "refused");
    const action = "s3:ReplicateObject";
    const isAllowed = findRequester(requester, directory).some((caller) =>
      authorizer.isAllowed({ caller, action, bucket, bucketName, key, values: new Map() }),
    );
    if (!isAllowed)
      throw new ReplicationFault("the sender of the rule may not write there any more", "refused");
  }
}

// That the source is gone is no fault of the destination.
function toFault(error: unknown, version?: SentVersion): unknown {
  if (!(error instanceof StoreError)) return error;
  const isSource = version !== undefined && MISSING.has(error.code);
  if (isSource || TRANSIENT.has(error.code)) return error;
  return new ReplicationFault(`${error.code}: ${error.message}`, "refused", { cause: error });
}
