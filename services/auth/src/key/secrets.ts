// Secrets of the installation: configured, or on SQLite generated once and stored next to the database.
import { join } from "node:path";
import type { DatabaseKind } from "@platform/kernel/db";
import { decodeSecret, loadSecretFile, parseEncryptionKeys } from "@platform/kernel/secrets";
import type { AuthConfig } from "../config.ts";

/** Raw key material, 32 bytes or more each. */
export interface Secrets {
  /** Signs session tokens, challenges and links. */
  session: Buffer;
  /** Encrypts at rest: the first key encrypts, all decrypt. Exactly 32 bytes each, at least one. */
  encryption: readonly Buffer[];
}

const FILE_NAME = "secrets.json";
const KEY_BYTES = 32;

/** Reads or generates the secrets. Throws, naming the variable, if a secret is too short or missing. */
export function loadSecrets(
  config: Pick<AuthConfig, "session_secret" | "encryption_keys" | "data_dir">,
  kind: DatabaseKind,
): Secrets {
  const { session_secret: session, encryption_keys: encryption } = config;
  const isComplete = session !== undefined && encryption !== undefined;
  if (!isComplete && kind === "postgres") {
    const name =
      session === undefined ? "PLATFORM_AUTH_SESSION_SECRET" : "PLATFORM_AUTH_ENCRYPTION_KEYS";
    throw new Error(`${name} is required on PostgreSQL, with the same value on every node`);
  }
  const stored = isComplete
    ? undefined
    : loadSecretFile(join(config.data_dir, FILE_NAME), ["session", "encryption"]);
  return {
    session: readSecret("PLATFORM_AUTH_SESSION_SECRET", session ?? stored!.session),
    encryption: parseEncryptionKeys("auth", encryption ?? stored!.encryption),
  };
}

function readSecret(name: string, text: string): Buffer {
  const bytes = decodeSecret(text);
  if (bytes === undefined || bytes.length < KEY_BYTES) {
    throw new Error(`${name}: at least 32 bytes are required, raw or as hex:… or base64:…`);
  }
  return bytes;
}
