// The content of the key file, sealed with a random key, which each master key that opens it wraps.
import { createHash, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { openBytes, sealBytes } from "../access/secret-box.ts";

const KEY_BYTES = 32;

/** A master key. */
export interface MasterKey {
  readonly key: Buffer;
  /** Of a secret service: the version of the secret. */
  readonly version?: number | undefined;
}

const keyText = z.base64().length(44);
const idText = z.string().regex(/^[0-9a-f]{16}$/);
const versionSchema = z.strictObject({
  id: idText,
  createdMs: z.number(),
  /** Of local keys. */
  key: keyText.optional(),
  /** Of keys in a secret service: the version of the secret, and a digest that identifies its value. */
  secret: z.strictObject({ version: z.int(), check: z.string() }).optional(),
});
const namedSchema = z.strictObject({
  id: z.string(),
  name: z.string(),
  description: z.string(),
  source: z.enum(["local", "secret_service"]),
  state: z.enum(["enabled", "disabled", "pending_deletion"]),
  createdMs: z.number(),
  /** Set while the deletion is pending. */
  deleteMs: z.number().optional(),
  /** As put; without it, callers that may access an object may use its key. */
  policy: z.record(z.string(), z.unknown()).optional(),
  /** The current version is the first. */
  versions: z.array(versionSchema).min(1),
});
const contentSchema = z.strictObject({
  /** Secrets of webhooks are derived from it: it stays when the master key changes. */
  webhooks: keyText,
  /** Keys that seal the secrets of access keys, sessions and remotes; the first one seals new ones. */
  boxes: z.array(z.strictObject({ id: idText, key: keyText })).min(1),
  /** The versions of the key of `SSE-S3`; the first is current. */
  storage: z.array(versionSchema).min(1),
  keys: z.array(namedSchema),
});
/** The tables of the file. */
export const sealedSchema = z.strictObject({
  /** Identifies the store in its backups. */
  owner: z.string(),
  locks: z
    .array(z.strictObject({ master: idText, sealed: z.string(), version: z.int().optional() }))
    .min(1),
  sealed: z.string(),
});

/** The opened content of the file. */
export type KeyContent = z.output<typeof contentSchema>;
export type KeyVersion = z.output<typeof versionSchema>;
export type NamedKeyRecord = z.output<typeof namedSchema>;
export type SealedContent = z.output<typeof sealedSchema>;

/** Identifies a master key without revealing it. */
export function identifyMaster({ key }: MasterKey): string {
  const bytes = hkdfSync("sha256", key, "", "platform-vault master key id", KEY_BYTES);
  return createHash("sha256").update(Buffer.from(bytes)).digest("hex").slice(0, 16);
}

/** Seals the content for several master keys, with a new random key each time. */
export function sealContent(
  content: KeyContent,
  owner: string,
  masters: readonly MasterKey[],
): SealedContent {
  const key = randomBytes(KEY_BYTES);
  const locks = masters.map((master) => {
    const id = identifyMaster(master);
    const sealed = sealBytes(deriveLock(master), key, `lock ${owner} ${id}`);
    return {
      master: id,
      sealed,
      ...(master.version === undefined ? {} : { version: master.version }),
    };
  });
  const sealed = sealBytes(key, Buffer.from(JSON.stringify(content)), `keys ${owner}`);
  return { owner, locks, sealed };
}

/** Opens the content; `undefined` if the master key is another one. Throws if it is damaged. */
export function openContent(
  { owner, locks, sealed }: SealedContent,
  master: MasterKey,
): KeyContent | undefined {
  const id = identifyMaster(master);
  const lock = locks.find((one) => one.master === id);
  if (lock === undefined) return undefined;
  const key = openBytes(deriveLock(master), lock.sealed, `lock ${owner} ${id}`);
  const text = openBytes(key, sealed, `keys ${owner}`).toString("utf8");
  return contentSchema.parse(JSON.parse(text));
}

/** A digest that identifies a key without revealing it. */
export function digestKey(key: Buffer): string {
  const bytes = hkdfSync("sha256", key, "", "platform-vault key check", KEY_BYTES);
  return Buffer.from(bytes).toString("base64");
}

/** True if a key has a digest; compares in constant time. */
export function matchesDigest(key: Buffer, digest: string): boolean {
  const found = Buffer.from(digestKey(key));
  const wanted = Buffer.from(digest);
  return found.length === wanted.length && timingSafeEqual(found, wanted);
}

function deriveLock({ key }: MasterKey): Buffer {
  return Buffer.from(hkdfSync("sha256", key, "", "platform-vault key file", KEY_BYTES));
}
