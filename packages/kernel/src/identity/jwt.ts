// Compact JWTs: taken apart strictly, their signature checked with a key that is bound to one algorithm, claims typed.
// RFC 7515, RFC 7519, RFC 8725
import { createHmac, timingSafeEqual, verify, type KeyObject } from "node:crypto";
import type { Claims } from "./caller.ts";

/** The algorithms that exist here; `none` and all others do not. */
export type JwtAlgorithm = "HS256" | "RS256" | "ES256";

/** A key and the one algorithm it may be used with. */
export interface VerificationKey {
  readonly algorithm: JwtAlgorithm;
  readonly key: KeyObject;
}

/** A token taken apart; nothing of it has been verified. */
export interface ParsedJwt {
  readonly algorithm: string;
  readonly kid: string | undefined;
  readonly typ: string | undefined;
  readonly payload: Readonly<Record<string, unknown>>;
  /** What is signed: the first two segments with their dot. */
  readonly signed: string;
  readonly signature: Buffer;
}

const SEGMENT = /^[A-Za-z0-9_-]+$/;
const KID_CHARACTERS_MAX = 256;
const ES256_SIGNATURE_BYTES = 64;

/** Takes a token apart; undefined when it is no JWS in compact form, or asks for extensions (`crit`) that nobody here knows. */
export function parseJwt(token: string): ParsedJwt | undefined {
  const segments = token.split(".", 4);
  if (segments.length !== 3 || !segments.every(isBase64url)) return undefined;
  const [head = "", body = "", signature = ""] = segments;
  const header = parseObject(head);
  const payload = parseObject(body);
  if (header === undefined || payload === undefined || "crit" in header) return undefined;
  const { alg, kid, typ } = header;
  if (typeof alg !== "string" || (typ !== undefined && typeof typ !== "string")) return undefined;
  if (kid !== undefined && (typeof kid !== "string" || kid.length > KID_CHARACTERS_MAX)) {
    return undefined;
  }
  return {
    algorithm: alg,
    kid,
    typ: typ?.toLowerCase(),
    payload,
    signed: `${head}.${body}`,
    signature: Buffer.from(signature, "base64url"),
  };
}

/** Whether the signature is right. The algorithm is the key's; the token's must be the same one. */
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

/** The claims with their types; undefined when one of the known ones has another type or `exp` is missing. */
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

// Strict: a token with unused bits set in a segment would be a second spelling of the same token, which what is kept by
// the token's text (caches, revocation lists) would take for another one.
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
