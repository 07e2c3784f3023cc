// The key-encryption key of SSE-S3.
import { createHash, hkdfSync } from "node:crypto";
import type { KeyProvider } from "../blob/encryption.ts";

/** Keys that are derived from a master key. */
export function createKeyProvider(masterKey: Buffer): KeyProvider {
  const key = Buffer.from(hkdfSync("sha256", masterKey, "", "platform-vault objects", 32));
  const id = createHash("sha256").update(key).digest("hex").slice(0, 16);
  return { current: () => ({ id, key }), find: (wanted) => (wanted === id ? key : undefined) };
}
