// DPoP proofs (RFC 9449) at userinfo; the core verifies those at the token endpoint.
import { createPublicKey, hash, verify, type KeyObject } from "node:crypto";
import { parseJwt, type ParsedJwt } from "@platform/kernel/identity";
import type { Clock } from "@platform/kernel/time";

const AGE_SECONDS_MAX = 300;
const PROOF_CHARACTERS_MAX = 8_192;
const ID_CHARACTERS_MAX = 256;

/** The request that a proof must be bound to. */
export interface ProofTarget {
  method: string;
  /** Without query and fragment. */
  url: string;
  accessToken: string;
  /** RFC 7638 thumbprint of the key that the token is bound to. */
  jkt: string;
}

/** The id of a valid proof, which must be accepted only once until it expires. */
export interface AcceptedProof {
  jti: string;
  /** Seconds since 1970. */
  expiresAt: number;
}

/** Verifies a proof (section 4.3); `undefined` if it is invalid. The caller rejects known ids. */
export function checkProof(
  proof: string,
  target: ProofTarget,
  clock: Clock,
): AcceptedProof | undefined {
  const parsed = parseProof(proof);
  if (parsed === undefined) return undefined;
  if (parsed.thumbprint !== target.jkt || !isSigned(parsed)) return undefined;
  const { htm, htu, ath, iat, jti } = parsed.jwt.payload;
  const now = Math.floor(clock.now() / 1_000);
  const fits =
    htm === target.method &&
    typeof htu === "string" &&
    isSameUrl(htu, target.url) &&
    ath === hash("sha256", target.accessToken, "base64url") &&
    typeof iat === "number" &&
    Math.abs(now - iat) <= AGE_SECONDS_MAX &&
    typeof jti === "string" &&
    jti !== "" &&
    jti.length <= ID_CHARACTERS_MAX;
  return fits ? { jti, expiresAt: iat + 2 * AGE_SECONDS_MAX } : undefined;
}

/** The thumbprint of the key in a proof's header, unverified; `undefined` if there is none. */
export function readThumbprint(proof: string | undefined): string | undefined {
  return proof === undefined ? undefined : parseProof(proof)?.thumbprint;
}

/** The id of a proof, unverified; `undefined` if there is none. */
export function readProofId(proof: string | undefined): unknown {
  return proof === undefined ? undefined : parseProof(proof)?.jwt.payload["jti"];
}

interface ParsedProof {
  key: KeyObject;
  algorithm: "ES256" | "EdDSA";
  thumbprint: string;
  jwt: ParsedJwt;
}

function parseProof(proof: string): ParsedProof | undefined {
  if (proof.length > PROOF_CHARACTERS_MAX) return undefined;
  const jwt = parseJwt(proof);
  if (jwt === undefined) return undefined;
  const { typ, alg, jwk } = jwt.header;
  if (typ !== "dpop+jwt" || typeof jwk !== "object" || jwk === null || "d" in jwk) return undefined;
  const { kty, crv, x, y } = jwk as Record<string, unknown>;
  if (typeof x !== "string") return undefined;
  const isEc = alg === "ES256" && kty === "EC" && crv === "P-256" && typeof y === "string";
  const isEd = (alg === "EdDSA" || alg === "Ed25519") && kty === "OKP" && crv === "Ed25519";
  if (!isEc && !isEd) return undefined;
  // RFC 7638: the required members, sorted by name.
  const members = isEc ? { crv, kty, x, y } : { crv, kty, x };
  try {
    return {
      key: createPublicKey({ key: members, format: "jwk" }),
      algorithm: isEc ? "ES256" : "EdDSA",
      thumbprint: hash("sha256", JSON.stringify(members), "base64url"),
      jwt,
    };
  } catch {
    return undefined;
  }
}

function isSigned({ key, algorithm, jwt }: ParsedProof): boolean {
  const signed = Buffer.from(jwt.signed);
  return algorithm === "ES256"
    ? verify("sha256", signed, { key, dsaEncoding: "ieee-p1363" }, jwt.signature)
    : verify(null, signed, key, jwt.signature);
}

function isSameUrl(given: string, expected: string): boolean {
  const url = URL.parse(given);
  return url !== null && `${url.origin}${url.pathname}` === expected;
}
