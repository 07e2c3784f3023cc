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

/** The key of the box before the first change of the master key. */
export function deriveBoxKey(masterKey: Buffer): Buffer {
  return Buffer.from(hkdfSync("sha256", masterKey, "", "platform-vault access keys", KEY_BYTES));
}

/** AES-256-GCM. The name of the owner is authenticated with the text. */
export class SecretBox {
  readonly #listKeys: () => readonly Buffer[];

  /** Keys of 32 bytes: the first one seals, all open. They may change. */
  constructor(listKeys: () => readonly Buffer[]) {
    this.#listKeys = listKeys;
  }

  /** Base64 of nonce, tag and ciphertext; `open` needs the same `name`. */
  seal(text: string, name: string): string {
    const [key] = this.#listKeys();
    if (key === undefined) throw new TypeError("a secret box needs a key");
    return sealBytes(key, Buffer.from(text), name);
  }

  /** Throws if the key, the name or the bytes differ from those of `seal`. */
  open(sealed: string, name: string): string {
    return this.#open(sealed, name).text;
  }

  /** The text sealed with the first key; `undefined` if it is already. Throws as `open`. */
  renew(sealed: string, name: string): string | undefined {
    const { text, isCurrent } = this.#open(sealed, name);
    return isCurrent ? undefined : this.seal(text, name);
  }

  #open(sealed: string, name: string): { text: string; isCurrent: boolean } {
    let failure: unknown;
    for (const [index, key] of this.#listKeys().entries()) {
      try {
        return { text: openBytes(key, sealed, name).toString("utf8"), isCurrent: index === 0 };
      } catch (error) {
        failure ??= error;
      }
    }
    throw failure;
  }
}

/** Encrypts with AES-256-GCM: base64 of nonce, tag and ciphertext. The name is authenticated. */
export function sealBytes(key: Buffer, plain: Buffer, name: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from(name));
  const body = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), body]).toString("base64");
}

/** The inverse of `sealBytes`. Throws if the key, the name or the bytes differ. */
export function openBytes(key: Buffer, sealed: string, name: string): Buffer {
  const bytes = Buffer.from(sealed, "base64");
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, IV_BYTES));
  decipher.setAAD(Buffer.from(name));
  decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
}

/** Identifies the store in its backups by its first master key, without revealing the key. */
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
