// API keys as they are stored and shared between gateways.
import { PlatformError } from "@platform/kernel/errors";
import * as z from "zod";
import type { ApiKeySpec } from "../shared-state/index.ts";

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
