// API keys of tenants: found by the hash of the key that a request carries.
import { hash } from "node:crypto";
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import type { FieldBlock } from "@platform/http1";
import { API_KEY_FIELDS, type ApiKeySpec } from "../../shared-state/index.ts";

const KEY_CHARACTERS_MAX = 256;

/** The keys of a worker. */
export class ApiKeyTable {
  readonly #byId = new Map<string, ApiKeySpec>();
  // The position of a hash in the table tells an attacker nothing about keys, which are random.
  readonly #byHash = new Map<string, ApiKeySpec>();

  /** Adds a key. */
  set(key: ApiKeySpec): void {
    this.remove(key.id);
    this.#byId.set(key.id, key);
    this.#byHash.set(key.sha256, key);
  }

  /** Removes a key; a no-op if it does not exist. */
  remove(id: string): void {
    const key = this.#byId.get(id);
    if (key === undefined) return;
    this.#byId.delete(id);
    this.#byHash.delete(key.sha256);
  }

  /** True if the key exists. */
  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /** Finds a key by its plain text. */
  find(plain: string): ApiKeySpec | undefined {
    if (plain.length > KEY_CHARACTERS_MAX) return undefined;
    return this.#byHash.get(hash("sha256", plain, "hex"));
  }
}

/** Restrictions of a route that requires an API key. */
export interface ApiKeyRule {
  /** Label of the route. */
  readonly label: string;
  /** Absent: all tenants. */
  readonly tenants: readonly string[] | undefined;
}

/** Returns the key of a request. Throws 401 without a valid key, 403 if the key does not open the route. */
export function admitByKey(fields: FieldBlock, keys: ApiKeyTable, rule: ApiKeyRule): ApiKeySpec {
  const plain = readKey(fields);
  if (plain === "") throw createUnauthorizedError("An API key is required.", CHALLENGE);
  const key = keys.find(plain);
  if (key === undefined) throw createUnauthorizedError("The API key is not valid.", CHALLENGE);
  if (key.routes !== undefined && !key.routes.includes(rule.label)) {
    throw new PlatformError("forbidden", "The API key is not valid for this route.");
  }
  checkTenant(key.tenant, rule.tenants);
  return key;
}

const CHALLENGE = 'ApiKey realm="gateway"';

/** Throws 403 if the route does not admit the tenant. */
export function checkTenant(
  tenant: string | undefined,
  allowed: readonly string[] | undefined,
): void {
  if (allowed === undefined) return;
  if (tenant === undefined || !allowed.includes(tenant)) {
    throw new PlatformError("forbidden", "This tenant has no access to this route.");
  }
}

// Two different keys in one request could be judged differently by another component.
function readKey(fields: FieldBlock): string {
  let found = "";
  for (const name of API_KEY_FIELDS) {
    const value = fields.find(name);
    if (value === undefined || value === "") continue;
    if (found !== "" && found !== value) return "";
    found = value;
  }
  return found;
}
