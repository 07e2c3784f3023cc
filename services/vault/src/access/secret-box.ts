// Encrypts the secrets of access keys at rest. Signatures need them in clear text, so a hash is not enough.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";

const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** AES-256-GCM with one key. The name of the owner is authenticated with the text. */
export class SecretBox {
  readonly #key: Buffer;

  constructor(masterKey: Buffer) {
    this.#key = Buffer.from(
      hkdfSync("sha256", masterKey, "", "platform-vault access keys", KEY_BYTES),
    );
  }

  /** Base64 of nonce, tag and ciphertext; `open` needs the same `name`. */
  seal(text: string, name: string): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.#key, iv);
    cipher.setAAD(Buffer.from(name));
    const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString("base64");
  }

  /** Throws if the key, the name or the bytes differ from those of `seal`. */
  open(sealed: string, name: string): string {
    const bytes = Buffer.from(sealed, "base64");
    const decipher = createDecipheriv("aes-256-gcm", this.#key, bytes.subarray(0, IV_BYTES));
    decipher.setAAD(Buffer.from(name));
    decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    const rest = bytes.subarray(IV_BYTES + TAG_BYTES);
    return Buffer.concat([decipher.update(rest), decipher.final()]).toString("utf8");
  }
}

/** Identifies the store of a master key in its backups, without revealing the key. */
export function identifyStore(masterKey: Buffer): string {
  const bytes = hkdfSync("sha256", masterKey, "", "platform-vault store id", 16);
  return Buffer.from(bytes).toString("hex");
}

/**
 * The master key of a data directory: 32 random bytes in a file with mode 0600, created on the first start. With
 * `isNeeded`, a missing key is an error, because existing objects need it.
 */
export function loadMasterKey(path: string, isNeeded = false): Buffer {
  const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (bytes === 0) {
    if (isNeeded) {
      throw new Error(
        `${path} is missing or empty, and encrypted data cannot be read without it: restore it from a backup, or ` +
          "set PLATFORM_VAULT_MASTER_KEY to a new key (openssl rand -base64 32) and give up the encrypted data",
      );
    }
    makeMasterKey(path);
  }
  if (process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600);
  const key = readFileSync(path);
  if (key.length !== KEY_BYTES) {
    throw new Error(`${path} is not a key of ${KEY_BYTES} bytes: restore it from a backup`);
  }
  return key;
}

// An empty file was interrupted before its key was used. The key and its folder are synced before anything is sealed with
// it.
function makeMasterKey(path: string): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  rmSync(path, { force: true });
  writeFileSync(path, randomBytes(KEY_BYTES), { mode: 0o600, flag: "wx", flush: true });
  for (const name of [folder, dirname(folder)]) {
    const fd = openSync(name, "r");
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  }
}
