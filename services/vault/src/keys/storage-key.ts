// The first key of SSE-S3, which is derived from the master key.
import { createHash, hkdfSync } from "node:crypto";
import type { Kek } from "../blob/encryption.ts";

/** The key of `SSE-S3` before its first change. */
export function deriveStorageKey(masterKey: Buffer): Kek {
  const key = Buffer.from(hkdfSync("sha256", masterKey, "", "platform-vault objects", 32));
  return { id: createHash("sha256").update(key).digest("hex").slice(0, 16), key };
}
