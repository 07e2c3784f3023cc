// Secrets of the installation: configured, or on SQLite generated once and stored next to the database.
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { DatabaseKind } from "@platform/kernel/db";
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
  const stored = isComplete ? undefined : loadStored(config.data_dir);
  return {
    session: readSecret("PLATFORM_AUTH_SESSION_SECRET", session ?? stored!.session),
    encryption: (encryption ?? stored!.encryption)
      .split(",")
      .map((text) => readEncryptionKey(text.trim())),
  };
}

function readSecret(name: string, text: string): Buffer {
  const bytes = decode(text);
  if (bytes === undefined || bytes.length < KEY_BYTES) {
    throw new Error(`${name}: at least 32 bytes are required, raw or as hex:… or base64:…`);
  }
  return bytes;
}

function readEncryptionKey(text: string): Buffer {
  const bytes = decode(text);
  if (bytes?.length !== KEY_BYTES) {
    throw new Error(
      "PLATFORM_AUTH_ENCRYPTION_KEYS: each key must have 32 bytes, raw or as hex:… or base64:…",
    );
  }
  return bytes;
}

function decode(text: string): Buffer | undefined {
  if (text.startsWith("hex:")) {
    const hex = text.slice(4);
    return /^(?:[0-9a-f]{2})+$/i.test(hex) ? Buffer.from(hex, "hex") : undefined;
  }
  if (text.startsWith("base64:")) {
    const base64 = text.slice(7);
    return /^[A-Za-z0-9+/_-]+={0,2}$/.test(base64) ? Buffer.from(base64, "base64") : undefined;
  }
  return Buffer.from(text, "utf8");
}

function loadStored(folder: string): { session: string; encryption: string } {
  const path = join(folder, FILE_NAME);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const generate = (): string => `base64:${randomBytes(KEY_BYTES).toString("base64")}`;
  const fresh = { version: 1, session: generate(), encryption: generate() };
  const draft = `${path}.${process.pid}.new`;
  try {
    // The link fails if the file exists: of two processes that start concurrently one wins, and both read the same
    // file.
    writeFileSync(draft, `${JSON.stringify(fresh)}\n`, { mode: 0o600, flush: true });
    linkSync(draft, path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  if (process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600);
  const stored: unknown = JSON.parse(readFileSync(path, "utf8"));
  if (
    typeof stored === "object" &&
    stored !== null &&
    "session" in stored &&
    "encryption" in stored &&
    typeof stored.session === "string" &&
    typeof stored.encryption === "string"
  ) {
    return { session: stored.session, encryption: stored.encryption };
  }
  throw new Error(
    `${path} is damaged: restore it from a backup, because sessions and encrypted secrets depend on it`,
  );
}
