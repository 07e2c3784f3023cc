// Shared keys of DNS updates (TSIG, RFC 8945).

/** A shared key. */
export interface TsigKey {
  /** Such as `hmac-sha256`. */
  algorithm: string;
  name: string;
  secret: Buffer;
}

/** Hashes by the names of the algorithms. */
export const TSIG_HASHES: Readonly<Record<string, string>> = {
  "hmac-sha1": "sha1",
  "hmac-sha224": "sha224",
  "hmac-sha256": "sha256",
  "hmac-sha384": "sha384",
  "hmac-sha512": "sha512",
};

/** Parses `algorithm:name:secret` or, with HMAC-SHA256, `name:secret`; undefined if it is malformed. */
export function parseTsigKey(text: string): TsigKey | undefined {
  const parts = text.split(":");
  const [algorithm = "", name = "", encoded = ""] =
    parts.length === 2 ? ["hmac-sha256", ...parts] : parts;
  const secret = Buffer.from(encoded, "base64");
  const isBase64 = /^[A-Za-z0-9+/]+={0,2}$/.test(encoded) && secret.length >= 8;
  const isNamed = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?$/.test(name) && name.length <= 253;
  if (parts.length > 3 || !isBase64 || !isNamed || TSIG_HASHES[algorithm] === undefined)
    return undefined;
  return { algorithm, name: name.toLowerCase().replace(/\.$/, ""), secret };
}
