// Entries of access that gateways share, and their merging: a revocation is never undone.
import type {
  AccessChange,
  EndedSessions,
  EndedSessionSet,
  PolicySpec,
  UserRevocation,
} from "../shared-state/index.ts";
import { isNewerPolicy, policySchema } from "./policy-record.ts";
import { type ApiKeyRecord, apiKeySchema, makeRoom, toKeySpec } from "./api-key-record.ts";

/** Entries of one gateway, or of all. */
export interface SharedEntries {
  /** Keys that are valid, each an {@link ApiKeyRecord} as JSON. */
  keys: readonly string[];
  removedKeys: readonly { id: string; revokedAtMs: number }[];
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

const KEY_CHARACTERS_MAX = 65_536;
const USER_CHARACTERS_MAX = 1_024;
const POLICY_CHARACTERS_MAX = 2_097_152;

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
  const removed = new Map(entries.removedKeys.map(({ id, revokedAtMs }) => [id, revokedAtMs]));
  const removedKeys: string[] = [];
  const kept = Array.from(own.keys.values(), (key) => {
    const revokedAtMs = removed.get(key.id);
    if (key.revoked_at !== null || revokedAtMs === undefined) return key;
    removedKeys.push(key.id);
    return { ...key, revoked_at: formatTime(revokedAtMs) };
  });
  const { added, keys, skipped } = addKeys(own.keys, kept, entries.keys, removed);
  const revokedUsers = entries.revokedUsers.filter(
    ({ user, revokedAt }) =>
      user.length <= USER_CHARACTERS_MAX &&
      Number.isSafeInteger(revokedAt) &&
      revokedAt > (own.revokedUsers.get(user) ?? 0),
  );
  const endedSessions = entries.endedSessions.filter(
    (ended) => isEndedSession(ended) && own.endedSessions.isNews(ended),
  );
  const policy = readPolicy(entries.policy, own.policy);
  const changes = [added, removedKeys, revokedUsers, endedSessions];
  const isEqual = changes.every((list) => list.length === 0);
  if (isEqual && policy === undefined) return undefined;
  const change: AccessChange = {
    ...(added.length === 0 ? {} : { keys: added.map((key) => toKeySpec(key)) }),
    ...(removedKeys.length === 0 ? {} : { removedKeys }),
    ...(revokedUsers.length === 0 ? {} : { revokedUsers }),
    ...(endedSessions.length === 0 ? {} : { endedSessions }),
    ...(policy === undefined ? {} : { policy }),
  };
  return { keys, change, skipped };
}

function addKeys(
  own: OwnEntries["keys"],
  kept: readonly ApiKeyRecord[],
  texts: readonly string[],
  removed: ReadonlyMap<string, number>,
): { added: ApiKeyRecord[]; keys: readonly ApiKeyRecord[]; skipped: number } {
  const added: ApiKeyRecord[] = [];
  let keys = kept;
  let skipped = 0;
  for (const text of texts) {
    const key = readKey(text);
    if (key === undefined) skipped++;
    else if (!own.has(key.id) && !removed.has(key.id)) {
      try {
        keys = [...makeRoom(keys), key];
        added.push(key);
      } catch {
        skipped++;
      }
    }
  }
  return { added, keys, skipped };
}

function isEndedSession({ client, sid, sub, endedAt }: EndedSessions): boolean {
  const names = [client, sid ?? "", sub ?? ""];
  if (sid === undefined && sub === undefined) return false;
  return Number.isSafeInteger(endedAt) && names.every((name) => name.length <= USER_CHARACTERS_MAX);
}

/** A policy that replaces the own one. */
function readPolicy(text: string | undefined, own: PolicySpec): PolicySpec | undefined {
  if (text === undefined || text.length > POLICY_CHARACTERS_MAX) return undefined;
  try {
    const { data } = policySchema.safeParse(JSON.parse(text));
    return data !== undefined && isNewerPolicy(data, own) ? data : undefined;
  } catch {
    return undefined;
  }
}

function readKey(text: string): ApiKeyRecord | undefined {
  if (text.length > KEY_CHARACTERS_MAX) return undefined;
  try {
    const { data } = apiKeySchema.safeParse(JSON.parse(text));
    return data?.revoked_at === null ? data : undefined;
  } catch {
    return undefined;
  }
}

function formatTime(timeMs: number): string {
  const time = new Date(timeMs);
  return (Number.isNaN(time.getTime()) ? new Date(0) : time).toISOString();
}
