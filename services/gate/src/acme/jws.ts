// Signed requests of ACME (RFC 8555, section 6.2): flattened JWS with an ECDSA key, and keyed by HMAC for external accounts.
import { createHash, createHmac, createPublicKey, type KeyObject, sign } from "node:crypto";

/** Members of a protected header. */
type Header = Readonly<Record<string, unknown>>;

/** A flattened JWS. */
interface Jws {
  protected: string;
  payload: string;
  signature: string;
}

/** The public key of an account. */
export interface AccountJwk {
  kty: "EC";
  crv: "P-256";
  x: string;
  y: string;
}

/** Returns the public part of a P-256 key. */
export function describeKey(key: KeyObject): AccountJwk {
  const { x = "", y = "" } = createPublicKey(key).export({ format: "jwk" });
  return { kty: "EC", crv: "P-256", x, y };
}

/** SHA-256 thumbprint of a key (RFC 7638). */
export function hashKey({ crv, kty, x, y }: AccountJwk): string {
  return createHash("sha256").update(JSON.stringify({ crv, kty, x, y })).digest("base64url");
}

/** Signs a payload; undefined is the empty one of a POST-as-GET. */
export function signJws(key: KeyObject, header: Header, payload: object | undefined): Jws {
  const content = encode({ alg: "ES256", ...header }, payload);
  const signature = sign("sha256", join(content), { key, dsaEncoding: "ieee-p1363" });
  return { ...content, signature: signature.toString("base64url") };
}

/** Binds an account to one at the CA (RFC 8555, section 7.3.4). `hmacKey` is base64url. */
export function bindAccount(jwk: AccountJwk, kid: string, hmacKey: string, url: string): Jws {
  const content = encode({ alg: "HS256", kid, url }, jwk);
  const hmac = createHmac("sha256", Buffer.from(hmacKey, "base64url"));
  return { ...content, signature: hmac.update(join(content)).digest("base64url") };
}

function encode(header: Header, payload: object | undefined): Omit<Jws, "signature"> {
  return {
    protected: toBase64(JSON.stringify(header)),
    payload: payload === undefined ? "" : toBase64(JSON.stringify(payload)),
  };
}

function join({ protected: header, payload }: Omit<Jws, "signature">): Buffer {
  return Buffer.from(`${header}.${payload}`, "latin1");
}

function toBase64(text: string): string {
  return Buffer.from(text, "utf8").toString("base64url");
}
