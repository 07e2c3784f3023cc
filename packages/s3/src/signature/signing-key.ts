// Signing keys of Signature Version 4, derived once per credential scope.
import { createHmac, hash, timingSafeEqual } from "node:crypto";

/** The credential scope of a key, without the access key. */
export interface SigningScope {
  /** `YYYYMMDD` */
  date: string;
  region: string;
  service: string;
}

/** A credential scope as text. */
export function formatScope(scope: SigningScope): string {
  return `${scope.date}/${scope.region}/${scope.service}/aws4_request`;
}

/** Derives the signing key of a scope. */
export function deriveSigningKey(secret: string, scope: SigningScope): SigningKey {
  const ofDate = hmac(`AWS4${secret}`, scope.date);
  const ofRegion = hmac(ofDate, scope.region);
  return new SigningKey(hmac(hmac(ofRegion, scope.service), "aws4_request"));
}

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
/** More than most requests need. */
const TEXT_BYTES = 512;

/**
 * A key of at most 64 bytes that signs with HMAC-SHA256. It computes the two digests of RFC 2104 over blocks that start
 * with the padded key: an Hmac object costs twice as much.
 */
export class SigningKey {
  readonly #inner = Buffer.alloc(BLOCK_BYTES + TEXT_BYTES);
  readonly #outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES);

  constructor(key: Buffer) {
    for (let at = 0; at < BLOCK_BYTES; at += 1) {
      this.#inner[at] = (key[at] ?? 0) ^ 0x36;
      this.#outer[at] = (key[at] ?? 0) ^ 0x5c;
    }
  }

  /** The hexadecimal signature of a text. */
  sign(text: string): string {
    const end = BLOCK_BYTES + Buffer.byteLength(text);
    const inner = end <= this.#inner.length ? this.#inner : this.#makeRoom(end);
    inner.write(text, BLOCK_BYTES);
    this.#outer.write(hash("sha256", inner.subarray(0, end), "hex"), BLOCK_BYTES, "hex");
    return hash("sha256", this.#outer, "hex");
  }

  #makeRoom(bytes: number): Buffer {
    const wider = Buffer.alloc(bytes);
    this.#inner.copy(wider, 0, 0, BLOCK_BYTES);
    return wider;
  }
}

/** Compares two hexadecimal signatures in constant time. */
export function isSameSignature(expected: string, given: string): boolean {
  const a = Buffer.from(expected, "latin1");
  const b = Buffer.from(given, "latin1");
  return a.length === b.length && timingSafeEqual(a, b);
}

/** A credential of a known access key, with its key of the day. */
interface KnownCredential {
  accessKey: string;
  scope: SigningScope;
  secret: string;
  key: SigningKey;
}

/**
 * Remembers credentials of access keys that exist, with their derived keys: that saves parsing the text and four HMACs per
 * request. It decides nothing: each request looks its access key up, and a secret that has changed derives the key again.
 * Bounded; the oldest is dropped first.
 */
export class SigningKeyCache {
  readonly #entriesMax: number;
  readonly #entries = new Map<string, KnownCredential>();

  constructor(entriesMax = 1_000) {
    this.#entriesMax = entriesMax;
  }

  /** The access key and the scope of a credential that `get` was called with. */
  recall(credential: string): KnownCredential | undefined {
    return this.#entries.get(credential);
  }

  /** The signing key of a credential, `ACCESS_KEY/DATE/REGION/s3/aws4_request`. */
  get(credential: string, accessKey: string, secret: string, scope: SigningScope): SigningKey {
    const known = this.#entries.get(credential);
    if (known !== undefined && known.secret === secret) return known.key;
    const key = deriveSigningKey(secret, scope);
    this.#entries.delete(credential);
    if (this.#entries.size >= this.#entriesMax) {
      this.#entries.delete(this.#entries.keys().next().value ?? credential);
    }
    this.#entries.set(credential, { accessKey, scope, secret, key });
    return key;
  }

  /** Drops a credential: its access key was removed. */
  forget(credential: string): void {
    this.#entries.delete(credential);
  }
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
