// Compact JWTs: strict parsing, signature verification with a key bound to one algorithm, typed claims. RFC 7515, RFC
// 7519, RFC 8725
import {
  constants,
  createHmac,
  timingSafeEqual,
  verify,
  type KeyObject,
  type SigningOptions,
} from "node:crypto";
import type { Claims } from "./caller.ts";

/** A form of signatures with public keys (RFC 7518 section 3.1, RFC 8037 section 3.1). */
interface SignatureForm {
  /** Hash of the signed text; null if it is a part of the algorithm. */
  readonly digest: string | null;
  /** Size of a signature in bytes; undefined if it depends on the key. */
  readonly bytes?: number;
  readonly options?: SigningOptions;
}

const PSS: SigningOptions = {
  padding: constants.RSA_PKCS1_PSS_PADDING,
  // The salt is as long as the hash (RFC 7518 section 3.5).
  saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
};
const CONCATENATED: SigningOptions = { dsaEncoding: "ieee-p1363" };

const SIGNATURES = {
  RS256: { digest: "sha256" },
  RS384: { digest: "sha384" },
  RS512: { digest: "sha512" },
  PS256: { digest: "sha256", options: PSS },
  PS384: { digest: "sha384", options: PSS },
  PS512: { digest: "sha512", options: PSS },
  ES256: { digest: "sha256", bytes: 64, options: CONCATENATED },
  ES384: { digest: "sha384", bytes: 96, options: CONCATENATED },
  ES512: { digest: "sha512", bytes: 132, options: CONCATENATED },
  EdDSA: { digest: null, bytes: 64 },
} as const satisfies Readonly<Record<string, SignatureForm>>;

/** Algorithms of the keys of a key set. */
export type KeySetAlgorithm = keyof typeof SIGNATURES;

/** Supported algorithms; all others are rejected, including `none`. HS256 is for shared secrets only. */
export type JwtAlgorithm = "HS256" | KeySetAlgorithm;

/** True for the algorithms of the keys of a key set. */
export function isKeySetAlgorithm(algorithm: string): algorithm is KeySetAlgorithm {
  return Object.hasOwn(SIGNATURES, algorithm);
}

/** A key and its algorithm. */
export interface VerificationKey {
  readonly algorithm: JwtAlgorithm;
  readonly key: KeyObject;
}

/** A parsed, unverified token. */
export interface ParsedJwt {
  /** All members of the header, such as `jwk` of a DPoP proof. */
  readonly header: Readonly<Record<string, unknown>>;
  readonly algorithm: string;
  readonly kid: string | undefined;
  readonly typ: string | undefined;
  readonly payload: Readonly<Record<string, unknown>>;
  /** The signed text: the first two segments with their dot. */
  readonly signed: string;
  readonly signature: Buffer;
}

const SEGMENT = /^[A-Za-z0-9_-]+$/;
const KID_CHARACTERS_MAX = 256;

/**
 * Parses a token without verifying it; undefined if it is not a JWS in compact form with a JSON object as payload, is not
 * in canonical base64url, or requires extensions (`crit`). `typ` is returned in lower case.
 */
export function parseJwt(token: string): ParsedJwt | undefined {
  const segments = token.split(".", 4);
  if (segments.length !== 3 || !segments.every(isBase64url)) return undefined;
  const [head = "", body = "", signature = ""] = segments;
  const header = parseObject(head);
  const payload = parseObject(body);
  if (header === undefined || payload === undefined || "crit" in header) return undefined;
  // RFC 7797 section 7: others may read the payload of such a token in another way.
  if (header["b64"] !== undefined && header["b64"] !== true) return undefined;
  const { alg, kid, typ } = header;
  if (typeof alg !== "string" || (typ !== undefined && typeof typ !== "string")) return undefined;
  if (kid !== undefined && (typeof kid !== "string" || kid.length > KID_CHARACTERS_MAX)) {
    return undefined;
  }
  return {
    header,
    algorithm: alg,
    kid,
    typ: typ?.toLowerCase(),
    payload,
    signed: `${head}.${body}`,
    signature: Buffer.from(signature, "base64url"),
  };
}

/** True if the signature is valid and the token's algorithm is that of the key. */
export function isSignatureValid(jwt: ParsedJwt, key: VerificationKey): boolean {
  if (jwt.algorithm !== key.algorithm) return false;
  if (key.algorithm === "HS256") {
    const expected = createHmac("sha256", key.key).update(jwt.signed).digest();
    return jwt.signature.length === expected.length && timingSafeEqual(jwt.signature, expected);
  }
  const { digest, bytes, options }: SignatureForm = SIGNATURES[key.algorithm];
  if (bytes !== undefined && jwt.signature.length !== bytes) return false;
  const verifying = options === undefined ? key.key : { key: key.key, ...options };
  return verify(digest, Buffer.from(jwt.signed), verifying, jwt.signature);
}

/** Reads the claims; undefined if a known claim has the wrong type or `exp` is missing. */
export function readClaims(payload: Readonly<Record<string, unknown>>): Claims | undefined {
  const { exp, aud } = payload;
  const audience = typeof aud === "string" ? [aud] : aud;
  const scope = readList(payload["scope"], " ");
  const roles = readList(payload["roles"], undefined);
  const isTyped =
    typeof exp === "number" &&
    Number.isFinite(exp) &&
    (audience === undefined || isTextList(audience)) &&
    scope !== undefined &&
    roles !== undefined &&
    TEXTS.every((name) => payload[name] === undefined || typeof payload[name] === "string") &&
    NUMBERS.every((name) => payload[name] === undefined || Number.isFinite(payload[name]));
  if (!isTyped) return undefined;
  const claims: Record<string, unknown> = { exp, scope, roles, all: payload };
  if (audience !== undefined) claims["aud"] = audience;
  for (const name of [...TEXTS, ...NUMBERS]) {
    if (payload[name] !== undefined) claims[name] = payload[name];
  }
  return claims as unknown as Claims;
}

const TEXTS = ["iss", "sub", "jti", "sid", "username", "tenant"] as const;
const NUMBERS = ["iat", "nbf", "policy_version"] as const;

// Strict: unused bits in a segment would allow several spellings of the same token, which caches and revocation lists
// would treat as different tokens.
function isBase64url(segment: string): boolean {
  return (
    SEGMENT.test(segment) && Buffer.from(segment, "base64url").toString("base64url") === segment
  );
}

function parseObject(segment: string): Record<string, unknown> | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(
      Buffer.from(segment, "base64url"),
    );
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

function readList(value: unknown, separator: string | undefined): readonly string[] | undefined {
  if (value === undefined) return [];
  if (typeof value === "string") {
    return separator === undefined ? [value] : value.split(separator).filter(Boolean);
  }
  return isTextList(value) ? value : undefined;
}

function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
