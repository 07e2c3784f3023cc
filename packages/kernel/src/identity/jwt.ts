// Compact JWTs: strict parsing, signature verification with a key bound to one algorithm, typed claims. RFC 7515, RFC
// 7519, RFC 8725
import { createHmac, timingSafeEqual, verify, type KeyObject } from "node:crypto";
import type { Claims } from "./caller.ts";

/** Supported algorithms; all others are rejected, including `none`. */
export type JwtAlgorithm = "HS256" | "RS256" | "ES256";

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
const ES256_SIGNATURE_BYTES = 64;

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
  switch (key.algorithm) {
    case "HS256": {
      const expected = createHmac("sha256", key.key).update(jwt.signed).digest();
      return jwt.signature.length === expected.length && timingSafeEqual(jwt.signature, expected);
    }
    case "RS256":
      return verify("sha256", Buffer.from(jwt.signed), key.key, jwt.signature);
    case "ES256":
      return (
        jwt.signature.length === ES256_SIGNATURE_BYTES &&
        verify(
          "sha256",
          Buffer.from(jwt.signed),
          { key: key.key, dsaEncoding: "ieee-p1363" },
          jwt.signature,
        )
      );
    default:
      return key.algorithm satisfies never;
  }
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
