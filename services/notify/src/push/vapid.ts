// VAPID: the service identifies itself to push services with a signed token (RFC 8292).
import { createECDH, createPrivateKey, sign, type KeyObject } from "node:crypto";

const VALID_SECONDS = 12 * 3_600;
/** A token is used again until this time before its end. */
const RENEW_SECONDS = 3_600;
const ORIGINS_MAX = 1_000;

/** The identity of the service. */
export class Vapid {
  /** Public key for `applicationServerKey` of browsers, base64url. */
  readonly publicKey: string;
  readonly #key: KeyObject;
  readonly #contact: string;
  readonly #tokens = new Map<string, { value: string; endsAt: number }>();

  /** `secret` has 32 random bytes; `contact` is a mailto: or https: URL for the operators of push services. */
  constructor(secret: Buffer, contact: string) {
    const ecdh = createECDH("prime256v1");
    ecdh.setPrivateKey(secret);
    const point = ecdh.getPublicKey();
    const encode = (bytes: Buffer): string => bytes.toString("base64url");
    this.publicKey = encode(point);
    this.#contact = contact;
    const coordinates = { x: encode(point.subarray(1, 33)), y: encode(point.subarray(33)) };
    const jwk = { kty: "EC", crv: "P-256", d: encode(secret), ...coordinates };
    this.#key = createPrivateKey({ key: jwk, format: "jwk" });
  }

  /** Returns the Authorization field for an endpoint. */
  authorize(endpoint: string, nowMs: number): string {
    const { origin } = new URL(endpoint);
    const now = Math.floor(nowMs / 1_000);
    let token = this.#tokens.get(origin);
    if (token === undefined || token.endsAt - RENEW_SECONDS <= now) {
      const endsAt = now + VALID_SECONDS;
      token = { value: this.#sign({ aud: origin, exp: endsAt, sub: this.#contact }), endsAt };
      if (this.#tokens.size >= ORIGINS_MAX) this.#tokens.clear();
      this.#tokens.set(origin, token);
    }
    return `vapid t=${token.value}, k=${this.publicKey}`;
  }

  #sign(claims: object): string {
    const encode = (value: object): string =>
      Buffer.from(JSON.stringify(value)).toString("base64url");
    const data = `${encode({ typ: "JWT", alg: "ES256" })}.${encode(claims)}`;
    const key = { key: this.#key, dsaEncoding: "ieee-p1363" } as const;
    return `${data}.${sign("sha256", Buffer.from(data), key).toString("base64url")}`;
  }
}
