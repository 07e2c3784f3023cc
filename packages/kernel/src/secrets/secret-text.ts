// Secrets in configuration: raw text, or bytes as `hex:…` or `base64:…`.
import { nameKeysVariable } from "./secret-box.ts";

const KEY_BYTES = 32;

/** Returns the bytes of a secret; undefined if the encoding that its prefix names is invalid. */
export function decodeSecret(text: string): Buffer | undefined {
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

/** Parses comma-separated keys of 32 bytes. Throws an Error that names the variable of the service. */
export function parseEncryptionKeys(service: string, text: string): Buffer[] {
  return text.split(",").map((one) => {
    const key = decodeSecret(one.trim());
    if (key?.length === KEY_BYTES) return key;
    throw new Error(
      `${nameKeysVariable(service)}: each key must have 32 bytes, raw or as hex:… or base64:…`,
    );
  });
}
