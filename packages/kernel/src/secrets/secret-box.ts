// Secrets at rest: AES-256-GCM, bound to their row, with encryption keys that can be rotated.
import { createCipheriv, createDecipheriv, hash, randomBytes } from "node:crypto";

const CIPHER_NAME = "aes-256-gcm";
const IV_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const VERSION = "v1";

/** Encrypts and decrypts text for the database. */
export interface SecretBox {
  /**
   * Encrypts with the first key. `place` is table, row and column: text moved to another place does not decrypt. The
   * result is `v1.<key id>.<base64url of iv, ciphertext and tag>`.
   */
  seal(text: string, place: string): string;
  /** Decrypts with the key that sealed the text. Throws if the key is missing or the text or its place was changed. */
  open(sealed: string, place: string): string;
  /** True if the text was sealed with another key than the first and should be sealed again. */
  isStale(sealed: string): boolean;
}

/** Returns the environment variable of the encryption keys of a service. */
export function nameKeysVariable(service: string): string {
  return `PLATFORM_${service.toUpperCase()}_ENCRYPTION_KEYS`;
}

/** Creates the box of a service, such as `auth`. `keys` have 32 bytes each; the first encrypts, all decrypt. */
export function createSecretBox(service: string, keys: readonly Buffer[]): SecretBox {
  const [first] = keys;
  if (first === undefined) throw new TypeError("a secret box needs a key");
  const byId = new Map(keys.map((key) => [identify(service, key), key]));
  const firstId = identify(service, first);
  return {
    seal: (text, place) => {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv(CIPHER_NAME, first, iv, { authTagLength: TAG_BYTES });
      cipher.setAAD(Buffer.from(`${VERSION}.${firstId}.${place}`));
      const body = Buffer.concat([iv, cipher.update(text, "utf8"), cipher.final()]);
      const sealed = Buffer.concat([body, cipher.getAuthTag()]);
      return `${VERSION}.${firstId}.${sealed.toString("base64url")}`;
    },
    open: (sealed, place) => {
      const [mark, id = "", body = ""] = sealed.split(".");
      const key = byId.get(id);
      if (mark !== VERSION || key === undefined) {
        throw new Error(`${place}: sealed under a key that ${nameKeysVariable(service)} lacks`);
      }
      const bytes = Buffer.from(body, "base64url");
      if (bytes.length < IV_BYTES + TAG_BYTES) throw new Error(`${place}: damaged`);
      const decipher = createDecipheriv(CIPHER_NAME, key, bytes.subarray(0, IV_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(Buffer.from(`${VERSION}.${id}.${place}`));
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      try {
        const text = decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES));
        return Buffer.concat([text, decipher.final()]).toString("utf8");
      } catch (error) {
        throw new Error(`${place}: damaged, or moved from another row`, { cause: error });
      }
    },
    isStale: (sealed) => sealed.split(".", 2)[1] !== firstId,
  };
}

// Identifies a key without revealing anything about it.
function identify(service: string, key: Buffer): string {
  if (key.length !== KEY_BYTES) throw new TypeError(`an encryption key has ${KEY_BYTES} bytes`);
  const named = Buffer.concat([Buffer.from(`platform-${service} key id\0`), key]);
  return hash("sha256", named, "hex").slice(0, 8);
}
