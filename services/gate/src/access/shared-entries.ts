// Entries of access that gateways share. Each kind has its own rule of merging; a revocation is never undone.
import type {
  AccessChange,
  EndedSessions,
  EndedSessionSet,
  PolicySpec,
  UserRevocation,
} from "../shared-state/index.ts";
import { type ApiKeyRecord, mergeKeys, type RemovedKey, toKeySpec } from "./api-key-record.ts";
import { listNewEnds } from "./ended-session-record.ts";
import { readNewerPolicy } from "./policy-record.ts";
import { listNewRevocations } from "./revoked-users.ts";

/** Entries of one gateway, or of all. */
export interface SharedEntries {
  /** Keys that are valid, each an {@link ApiKeyRecord} as JSON. */
  keys: readonly string[];
  removedKeys: readonly RemovedKey[];
  revokedUsers: readonly UserRevocation[];
  endedSessions: readonly EndedSessions[];
  /** The global policy as JSON; undefined before the first reload. */
  policy: string | undefined;
}

/** Entries of this gateway. */
export interface OwnEntries {
  keys: ReadonlyMap<string, ApiKeyRecord>;
  /** Seconds since 1970 by user. */
  revokedUsers: ReadonlyMap<string, number>;
  endedSessions: Pick<EndedSessionSet, "list" | "isNews">;
  policy: PolicySpec;
}

/** The outcome of {@link mergeEntries}. */
export interface MergedEntries {
  keys: readonly ApiKeyRecord[];
  /** The difference, for workers. */
  change: AccessChange;
  /** Entries that are malformed, or for which there is no room. */
  skipped: number;
}

/** The entries in the form in which they are shared. */
export function listEntries({
  keys,
  revokedUsers,
  endedSessions,
  policy,
}: OwnEntries): SharedEntries {
  const records = [...keys.values()];
  return {
    keys: records.filter((key) => key.revoked_at === null).map((key) => JSON.stringify(key)),
    removedKeys: records.flatMap(({ id, revoked_at: revokedAt }) =>
      revokedAt === null ? [] : [{ id, revokedAtMs: Date.parse(revokedAt) }],
    ),
    revokedUsers: Array.from(revokedUsers, ([user, revokedAt]) => ({ user, revokedAt })),
    endedSessions: endedSessions.list(),
    policy: policy.reloadedAt === 0 ? undefined : JSON.stringify(policy),
  };
}

/** Adds entries of other gateways to those of this one; undefined if there is nothing new. */
export function mergeEntries(own: OwnEntries, entries: SharedEntries): MergedEntries | undefined {
  const { keys, added, removed, skipped } = mergeKeys(own.keys, entries.keys, entries.removedKeys);
  const revokedUsers = listNewRevocations(own.revokedUsers, entries.revokedUsers);
  const endedSessions = listNewEnds(own.endedSessions, entries.endedSessions);
  const policy = readNewerPolicy(entries.policy, own.policy);
  const change: AccessChange = {
    ...(added.length === 0 ? {} : { keys: added.map((key) => toKeySpec(key)) }),
    ...(removed.length === 0 ? {} : { removedKeys: [...removed] }),
    ...(revokedUsers.length === 0 ? {} : { revokedUsers }),
    ...(endedSessions.length === 0 ? {} : { endedSessions }),
    ...(policy === undefined ? {} : { policy }),
  };
  return Object.keys(change).length === 0 ? undefined : { keys, change, skipped };
}
