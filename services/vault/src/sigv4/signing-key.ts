// Signing keys of Signature Version 4, derived once per credential scope.
import { createHmac, timingSafeEqual } from "node:crypto";

/** Where and when a key signs: the credential scope without the access key. */
export interface SigningScope {
  /** `YYYYMMDD` */
  date: string;
  region: string;
  service: string;
}

/** A credential scope as it is signed. */
export function formatScope(scope: SigningScope): string {
  return `${scope.date}/${scope.region}/${scope.service}/aws4_request`;
}

/** The key that signs in a scope. */
export function deriveSigningKey(secret: string, scope: SigningScope): Buffer {
  const ofDate = hmac(`AWS4${secret}`, scope.date);
  const ofRegion = hmac(ofDate, scope.region);
  return hmac(hmac(ofRegion, scope.service), "aws4_request");
}

/** The hexadecimal signature of a text. */
export function signText(key: Buffer, text: string): string {
  return createHmac("sha256", key).update(text).digest("hex");
}

/** Compares two hexadecimal signatures in a time that does not depend on where they differ. */
export function isSameSignature(expected: string, given: string): boolean {
  const a = Buffer.from(expected, "latin1");
  const b = Buffer.from(given, "latin1");
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Keeps derived keys: four HMACs less for each request. Bounded, oldest out first. */
export class SigningKeyCache {
  readonly #entriesMax: number;
  readonly #entries = new Map<string, { secret: string; key: Buffer }>();

  constructor(entriesMax = 1_000) {
    this.#entriesMax = entriesMax;
  }

  /** The key of an access key in a scope; a changed secret derives it anew. */
  get(accessKey: string, secret: string, scope: SigningScope): Buffer {
    const name = `${accessKey}/${scope.date}/${scope.region}/${scope.service}`;
    const known = this.#entries.get(name);
    if (known !== undefined && known.secret === secret) return known.key;
    const key = deriveSigningKey(secret, scope);
    this.#entries.delete(name);
    if (this.#entries.size >= this.#entriesMax) {
      this.#entries.delete(this.#entries.keys().next().value ?? name);
    }
    this.#entries.set(name, { secret, key });
    return key;
  }
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
