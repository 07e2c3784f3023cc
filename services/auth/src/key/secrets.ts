// Secrets of the installation: configured, or on SQLite generated once and stored next to the database.
import { join } from "node:path";
import { decodeSecret, loadSecretFile, parseEncryptionKeys } from "@platform/kernel/secrets";
import type { AuthConfig } from "../config.ts";
import type { AuthDatabase } from "../database/schema.ts";

/** Raw key material, 32 bytes or more each. */
export interface Secrets {
  /** Signs session tokens, challenges and links. */
  session: Buffer;
  /** Encrypts at rest: the first key encrypts, all decrypt. Exactly 32 bytes each, at least one. */
  encryption: readonly Buffer[];
}

const FILE_NAME = "secrets.json";
const KEY_BYTES = 32;

/**
 * Reads the secrets, or generates them for a new database. Throws, naming the variable or the file, if a secret is too
 * short, or missing although the database is encrypted with it.
 */
export async function loadSecrets(
  config: Pick<AuthConfig, "session_secret" | "encryption_keys" | "data_dir">,
  database: AuthDatabase,
): Promise<Secrets> {
  const { session_secret: session, encryption_keys: encryption } = config;
  const isComplete = session !== undefined && encryption !== undefined;
  if (!isComplete && database.kind === "postgres") {
    const name =
      session === undefined ? "PLATFORM_AUTH_SESSION_SECRET" : "PLATFORM_AUTH_ENCRYPTION_KEYS";
    throw new Error(`${name} is required on PostgreSQL, with the same value on every node`);
  }
  const stored = isComplete
    ? undefined
    : loadSecretFile(
        join(config.data_dir, FILE_NAME),
        ["session", "encryption"],
        await isEncrypted(database),
      );
  return {
    session: readSecret("PLATFORM_AUTH_SESSION_SECRET", session ?? stored!.session),
    encryption: parseEncryptionKeys("auth", encryption ?? stored!.encryption),
  };
}

// The first start writes a signing key, which is encrypted.
async function isEncrypted({ db }: AuthDatabase): Promise<boolean> {
  const row = await db.selectFrom("auth_signing_keys").select("kid").limit(1).executeTakeFirst();
  return row !== undefined;
}

function readSecret(name: string, text: string): Buffer {
  const bytes = decodeSecret(text);
  if (bytes === undefined || bytes.length < KEY_BYTES) {
    throw new Error(`${name}: at least 32 bytes are required, raw or as hex:… or base64:…`);
  }
  return bytes;
}
