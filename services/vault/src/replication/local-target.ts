// A bucket of this store as the destination of versions: bytes are shared, ids and times stay.
import { isOwnBucket } from "../model/bucket.ts";
import type { ObjectInfo } from "../model/object.ts";
import type { ReplicatedAttribute, ReplicationRule } from "../model/replication.ts";
import type { StoredRequester } from "../model/requester.ts";
import { StoreError } from "../model/store-error.ts";
import type { Store } from "../object-store.ts";
import type { SenderRights } from "./sender-rights.ts";
import { isSent, ReplicationFault, type ReplicationTarget, type SentVersion } from "./target.ts";

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
  readonly rights: SenderRights;
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
      for (const attribute of attributes) {
        if (isSent(version.rule, attribute)) await this.#change(store, address, version, attribute);
      }
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
    const { retention, legalHold, websiteRedirect, storageClass } = object;
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
        ...this.#chooseOwner(object, rule),
        ...(retention === undefined ? {} : { retention }),
        ...(legalHold === undefined ? {} : { legalHold }),
        ...(websiteRedirect === undefined ? {} : { websiteRedirect }),
      },
    });
  }

  #chooseOwner({ owner, acl }: ObjectInfo, { destination }: ReplicationRule) {
    if (destination.ownsReplicas === true) {
      const bucket = this.#options.store.buckets.find(this.#options.bucket);
      return bucket === undefined ? {} : { owner: bucket.owner };
    }
    return {
      ...(owner === undefined ? {} : { owner }),
      ...(acl === undefined ? {} : { acl }),
    };
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
    const { store, rights, requester, bucket } = this.#options;
    if (store.buckets.find(bucket) === undefined || isOwnBucket(bucket))
      throw new ReplicationFault(`the bucket ${bucket} does not exist`, "refused");
    if (!rights.mayWrite(requester, bucket, key))
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
