// Replication: rules that send versions of a bucket to another one, and the marks that versions have of it.
import type { StoredRequester } from "./requester.ts";

/** The bucket that versions are sent to. */
export interface ReplicationDestination {
  /** A registered remote; absent for a bucket of this store. */
  readonly remote?: string;
  readonly bucket: string;
  /** Class of the replicas; that of the source if it is absent. */
  readonly storageClass?: string;
  /** The key that replicas are encrypted with there. */
  readonly keyId?: string;
  /** The account of the bucket, as it was put. */
  readonly account?: string;
  /** Replicas belong to the owner of their bucket, and do not have the ACL of their source. */
  readonly ownsReplicas?: true;
}

/** A rule as it was put. */
export interface ReplicationRule {
  readonly id: string;
  /** Of several rules with one destination the highest counts. */
  readonly priority: number;
  readonly enabled: boolean;
  readonly prefix?: string;
  /** All of these. */
  readonly tags?: Readonly<Record<string, string>>;
  readonly deleteMarkers: boolean;
  /** Versions from before the rule. */
  readonly existingObjects: boolean;
  /** Changes of replicas are sent back. */
  readonly replicaModifications: boolean;
  /** The element was given: whether objects that are encrypted with a named key are sent. */
  readonly encryptedObjects?: boolean;
  readonly destination: ReplicationDestination;
  /** Elements without an effect of their own, which are returned as they were put. */
  readonly echo: { readonly metrics?: boolean; readonly timeControl?: boolean };
  /** The older form of a rule: a prefix instead of a filter, without a priority. */
  readonly hasOlderForm?: true;
}

/** The setting of a bucket. */
export interface ReplicationSettings {
  /** Kept for clients; the rights are those of `requester`. */
  readonly role: string;
  readonly rules: readonly ReplicationRule[];
  /** Id of the store that it was put in, if that had one: one that is restored from a backup does not send in its place. */
  readonly store?: string;
  /** The sender of the setting, with whose rights buckets of this store are written. */
  readonly requester: StoredRequester;
}

/** Attributes of a version that can change after it was sent. */
export type ReplicatedAttribute = "tags" | "acl" | "retention" | "legalHold";

/** The state of a version under one rule, in its row. */
export interface ReplicationMark {
  readonly state: "PENDING" | "COMPLETED" | "FAILED";
  /** The version at the destination; absent until it is there. */
  readonly version?: string;
  /** Attributes that have changed since they were sent. */
  readonly changed?: readonly ReplicatedAttribute[];
  /** It has waited for more than 15 minutes, and an event has said so. */
  readonly isLate?: true;
  /** The destination is asked for the version first, which may be there or lost. */
  readonly isChecked?: true;
}

/** The states of a version by the ids of rules. */
export type ReplicationMarks = Readonly<Record<string, ReplicationMark>>;

/** A version of another store that is written here under its own id and time. */
export interface ReplicaSource {
  readonly versionId: string;
  /** Time of its writing there, epoch ms. */
  readonly modifiedMs: number;
}

/** Status of a version, as S3 names it. */
export type ReplicationStatus = "PENDING" | "COMPLETED" | "FAILED" | "REPLICA";

/** The status of a version by its marks; `undefined` if no rule has ever applied to it. */
export function findReplicationStatus({
  replica,
  replication,
}: {
  replica?: true | undefined;
  replication?: ReplicationMarks | undefined;
}): ReplicationStatus | undefined {
  // The usual case.
  if (replication === undefined) return replica === true ? "REPLICA" : undefined;
  const states = Object.values(replication).map(({ state }) => state);
  if (states.includes("FAILED")) return "FAILED";
  if (states.includes("PENDING")) return "PENDING";
  if (replica === true) return "REPLICA";
  return states.length === 0 ? undefined : "COMPLETED";
}

/** The parts of a version that decide about its rules. */
export interface ReplicatedVersion {
  readonly key: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly isMarker: boolean;
  /** Encrypted with a named key: rules send it only if they say so. */
  readonly hasNamedKey: boolean;
}

/** True if a version belongs to a rule, regardless of other rules. */
export function matchesReplication(
  { enabled, prefix = "", tags = {}, deleteMarkers, encryptedObjects }: ReplicationRule,
  version: ReplicatedVersion,
): boolean {
  if (!enabled || !version.key.startsWith(prefix)) return false;
  if (version.hasNamedKey && encryptedObjects !== true) return false;
  const names = Object.keys(tags);
  if (version.isMarker) return deleteMarkers && names.length === 0;
  return names.every((name) => version.tags[name] === tags[name]);
}

/** The rules of a version: of those with one destination the one with the highest priority. */
export function chooseReplicationRules(
  settings: ReplicationSettings | undefined,
  version: ReplicatedVersion,
): ReplicationRule[] {
  if (settings === undefined) return [];
  const chosen = new Map<string, ReplicationRule>();
  for (const rule of settings.rules) {
    // A rule that does not replicate markers hides those of lower priority for markers, too.
    if (!matchesReplication({ ...rule, deleteMarkers: true }, version)) continue;
    const { remote = "", bucket } = rule.destination;
    const place = `${remote}/${bucket}`;
    const other = chosen.get(place);
    if (other === undefined || other.priority < rule.priority) chosen.set(place, rule);
  }
  return [...chosen.values()].filter((rule) => !version.isMarker || rule.deleteMarkers);
}
