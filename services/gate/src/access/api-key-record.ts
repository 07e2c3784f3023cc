// API keys as they are stored and shared between gateways, and their merging.
import { PlatformError } from "@platform/kernel/errors";
import { z } from "zod";
import type { ApiKeySpec } from "../shared-state/index.ts";

/** Longest key that is taken over from another gateway. */
const KEY_CHARACTERS_MAX = 65_536;
/** Maximum number of API keys; revoked ones make room for new ones. */
const API_KEYS_MAX = 10_000;

/** The stored form: with the key's hash only. */
export const apiKeySchema = z.strictObject({
  id: z.string().min(1).max(128),
  tenant: z.string(),
  name: z.string(),
  hash: z.string(),
  rate_limit_rpm: z.int().nullable(),
  routes: z.array(z.string()),
  created_at: z.string(),
  revoked_at: z.string().nullable(),
});

/** An API key as it is stored: with its hash only. */
export type ApiKeyRecord = z.infer<typeof apiKeySchema>;

/** The key for workers. */
export function toKeySpec(key: ApiKeyRecord): ApiKeySpec {
  return {
    id: key.id,
    tenant: key.tenant,
    sha256: key.hash,
    ...(key.rate_limit_rpm === null ? {} : { rateLimitRpm: key.rate_limit_rpm }),
    ...(key.routes.length === 0 ? {} : { routes: key.routes }),
  };
}

/** The keys without the oldest revoked one, if there is no room for another. Throws `insufficient_storage`. */
export function makeRoom(keys: readonly ApiKeyRecord[]): readonly ApiKeyRecord[] {
  if (keys.length < API_KEYS_MAX) return keys;
  const oldest = keys.find((key) => key.revoked_at !== null);
  if (oldest !== undefined) return keys.filter((key) => key !== oldest);
  throw new PlatformError(
    "insufficient_storage",
    `there are already ${API_KEYS_MAX} API keys; revoke some first`,
  );
}

/** A key that another gateway has revoked. */
export interface RemovedKey {
  id: string;
  revokedAtMs: number;
}

/** The outcome of {@link mergeKeys}. */
export interface MergedKeys {
  /** All keys of this gateway afterwards. */
  keys: readonly ApiKeyRecord[];
  added: readonly ApiKeyRecord[];
  /** IDs of keys that were valid here. */
  removed: readonly string[];
  /** Number of keys that are malformed, or for which there is no room. */
  skipped: number;
}

/** Adds keys of other gateways, each as JSON. A revoked key stays revoked, in whatever order the entries arrive. */
export function mergeKeys(
  own: ReadonlyMap<string, ApiKeyRecord>,
  texts: readonly string[],
  removals: readonly RemovedKey[],
): MergedKeys {
  const revocations = new Map(removals.map(({ id, revokedAtMs }) => [id, revokedAtMs]));
  const removed: string[] = [];
  let keys: readonly ApiKeyRecord[] = Array.from(own.values(), (key) => {
    const revokedAtMs = revocations.get(key.id);
    if (key.revoked_at !== null || revokedAtMs === undefined) return key;
    removed.push(key.id);
    return { ...key, revoked_at: formatTime(revokedAtMs) };
  });
  const added: ApiKeyRecord[] = [];
  let skipped = 0;
  for (const text of texts) {
    const key = readKey(text);
    if (key === undefined) skipped++;
    else if (!own.has(key.id) && !revocations.has(key.id)) {
      try {
        keys = [...makeRoom(keys), key];
        added.push(key);
      } catch {
        skipped++;
      }
    }
  }
  return { keys, added, removed, skipped };
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
