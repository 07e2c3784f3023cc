// Verifies bearer tokens: a static token is the operator, a JWT is a user, all others are rejected.
import { createSecretKey, hash } from "node:crypto";
import { toLiveSecret, type LiveSecret, type Secret } from "../secrets/index.ts";
import type { Clock } from "../time/index.ts";
import type { Claims } from "./caller.ts";
import {
  isKeySetAlgorithm,
  isSignatureValid,
  parseJwt,
  readClaims,
  type JwtAlgorithm,
  type ParsedJwt,
  type VerificationKey,
} from "./jwt.ts";
import { JwksStore, type JwksOptions } from "./jwks.ts";
import { VerifiedTokens } from "./verified-tokens.ts";

/** Reasons for rejecting a token. */
type RefusalCode =
  | "too_large"
  | "malformed"
  /** The token is not a static token, and no other kind of token is configured. */
  | "unknown_token"
  | "algorithm_not_allowed"
  | "unknown_key"
  | "bad_signature"
  | "wrong_type"
  | "wrong_issuer"
  | "wrong_audience"
  | "wrong_trust_domain"
  | "expired"
  | "not_yet_valid"
  /** The token is bound to a key (`cnf`), which is not supported. */
  | "key_bound"
  | "revoked"
  /** The issuer's keys could not be fetched; the token may be valid. */
  | "keys_unavailable";

/**
 * Result of a verification. `detail` may be sent to the caller: until the signature is verified, it is the same for all
 * tokens, and an attacker learns nothing of keys and algorithms. `reason` is for logs.
 */
export type Verdict =
  | { readonly kind: "operator" }
  | { readonly kind: "user"; readonly claims: Claims }
  | {
      readonly kind: "refused";
      readonly code: RefusalCode;
      readonly detail: string;
      readonly reason: string;
    };

/**
 * Kind of JWTs that a verifier accepts.
 * - `access-token`: RFC 9068; a key set requires issuer and audience.
 * - `unbound`: any token that the key set signed: issuer, audience and `typ` are checked only if they are set.
 * - `jwt-svid`: identities of workloads (SPIFFE JWT-SVID): `aud` is required, `iss` is not.
 */
export type TokenProfile =
  | { readonly kind: "access-token" }
  | { readonly kind: "unbound" }
  | { readonly kind: "jwt-svid"; readonly trustDomain: string };

/** Options of {@link createTokenVerifier}. At least one of `staticTokens`, `secret` and `jwks` is required. */
export interface VerifierOptions {
  clock: Clock;
  /** Tokens of the operator. */
  staticTokens?: readonly Secret[];
  /** Secret of HS256 tokens in UTF-8. RFC 7518 section 3.2 requires 32 bytes; see `isWeakSecret`. */
  secret?: string;
  /** Further secrets of HS256 tokens, such as the one that `secret` has replaced. */
  formerSecrets?: readonly string[];
  /** Keys of tokens with another algorithm than HS256; what they require depends on `profile`. */
  jwks?: Omit<JwksOptions, "clock">;
  /** Default `access-token`. */
  profile?: TokenProfile;
  /** Required `iss`; if omitted, HS256 tokens may have any or none. */
  issuer?: string;
  /** `aud` must contain one of these; if omitted, HS256 tokens may have any or none. */
  audience?: string | readonly string[];
  /** Tolerated clock skew in seconds. Default 30. */
  leewaySeconds?: number;
  /** Called at each use of a token, cached or not. */
  isRevoked?: (claims: Claims) => boolean;
  /** Maximum length of a token in bytes. Default 16 384. */
  tokenBytesMax?: number;
  /** Maximum number of cached tokens. Default 10 000. */
  cacheMax?: number;
}

export interface TokenVerifier {
  /** Returns a promise only while keys are being fetched. Never throws or rejects. */
  verify(token: string): Verdict | Promise<Verdict>;
}

const SECRET_BYTES_MIN = 32;
/** https://spiffe.io/docs/latest/spiffe-specs/spiffe-id/ section 2.3 */
const SPIFFE_ID_CHARACTERS_MAX = 2_048;
/** Path of a SPIFFE ID without its first slash (section 2.2): no segment is empty, `.` or `..`. */
const SPIFFE_PATH = /^(?!\.{1,2}(?:\/|$))[A-Za-z0-9._-]+(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._-]+)*$/;
const UNVERIFIED: ReadonlySet<RefusalCode> = new Set([
  "too_large",
  "malformed",
  "unknown_token",
  "algorithm_not_allowed",
  "unknown_key",
  "bad_signature",
]);
const UNVERIFIED_DETAIL = "The token is not valid.";
const REASONS: Readonly<Record<RefusalCode, string>> = {
  too_large: "The token is too long.",
  malformed: "The token is malformed.",
  unknown_token: "The token is unknown.",
  algorithm_not_allowed: "The token's algorithm is not allowed.",
  unknown_key: "The token's key is unknown.",
  bad_signature: "The token's signature is invalid.",
  wrong_type: "The token is of another type.",
  wrong_issuer: "The token has another issuer.",
  wrong_audience: "The token is for another audience.",
  wrong_trust_domain: "The token is not of a workload of the trust domain.",
  expired: "The token has expired.",
  not_yet_valid: "The token is not valid yet.",
  key_bound: "The token is bound to a key, which is not supported.",
  revoked: "The token was revoked.",
  keys_unavailable: "The issuer's keys are currently unavailable.",
};

/** Creates a verifier. Throws a TypeError if the options accept no tokens, or if `jwks` lacks issuer or audience. */
export function createTokenVerifier(options: VerifierOptions): TokenVerifier {
  return new Verifier(options);
}

/** True if a secret is shorter than RFC 7518 section 3.2 requires for HS256: worth a warning at startup. */
export function isWeakSecret(secret: string): boolean {
  return Buffer.byteLength(secret) < SECRET_BYTES_MIN;
}

class Verifier implements TokenVerifier {
  readonly #options: VerifierOptions;
  readonly #staticTokens: readonly LiveSecret[];
  readonly #secretKeys: readonly VerificationKey[];
  readonly #jwks: JwksStore | undefined;
  readonly #audiences: readonly string[];
  readonly #profile: TokenProfile;
  readonly #leewaySeconds: number;
  readonly #tokenBytesMax: number;
  readonly #verified: VerifiedTokens;

  constructor(options: VerifierOptions) {
    const { staticTokens = [], secret, jwks, issuer, audience } = options;
    if (staticTokens.length === 0 && secret === undefined && jwks === undefined) {
      throw new TypeError("a verifier requires a static token, a secret or a JWKS");
    }
    if (staticTokens.includes("") || secret === "")
      throw new TypeError("a secret must not be empty");
    this.#profile = options.profile ?? { kind: "access-token" };
    if (jwks !== undefined) checkBinding(this.#profile, issuer, audience);
    this.#options = options;
    this.#staticTokens = staticTokens.map(toLiveSecret);
    const secrets = secret === undefined ? [] : [secret, ...(options.formerSecrets ?? [])];
    this.#secretKeys = secrets.map((text) => ({
      algorithm: "HS256",
      key: createSecretKey(Buffer.from(text)),
    }));
    if (jwks !== undefined) {
      // Tokens signed by removed keys must not stay cached.
      this.#jwks = new JwksStore({ ...jwks, clock: options.clock }, () => this.#verified.clear());
    }
    this.#audiences = typeof audience === "string" ? [audience] : (audience ?? []);
    this.#leewaySeconds = options.leewaySeconds ?? 30;
    this.#tokenBytesMax = options.tokenBytesMax ?? 16_384;
    this.#verified = new VerifiedTokens(options.cacheMax ?? 10_000);
  }

  verify(token: string): Verdict | Promise<Verdict> {
    if (token.length > this.#tokenBytesMax) return refuse("too_large");
    const cacheKey = digest(token);
    if (this.#isOperator(cacheKey)) return { kind: "operator" };
    const known = this.#verified.get(cacheKey);
    if (known !== undefined) {
      if (this.#isExpired(known)) this.#verified.delete(cacheKey);
      return this.#judgeUse(known);
    }
    if (this.#secretKeys.length === 0 && this.#jwks === undefined) return refuse("unknown_token");
    const jwt = parseJwt(token);
    if (jwt === undefined) return refuse("malformed");
    return this.#verifyJwt(jwt, cacheKey, true);
  }

  // Constant time: all static tokens are compared, by digests of the same length.
  #isOperator(tokenDigest: string): boolean {
    if (this.#staticTokens.length === 0) return false;
    const presented = Buffer.from(tokenDigest, "base64");
    let found = false;
    for (const own of this.#staticTokens) found = own.acceptsDigest(presented) || found;
    return found;
  }

  #verifyJwt(jwt: ParsedJwt, cacheKey: string, mayWait: boolean): Verdict | Promise<Verdict> {
    const [secretKey, ...former] = this.#secretKeys;
    if (jwt.algorithm === "HS256" && secretKey !== undefined) {
      const key = former.find((one) => isSignatureValid(jwt, one)) ?? secretKey;
      return this.#judge(jwt, key, cacheKey);
    }
    if (!isAllowedAlgorithm(this.#profile, jwt.algorithm) || this.#jwks === undefined) {
      return refuse("algorithm_not_allowed");
    }
    const lookup = this.#jwks.find(jwt.algorithm, jwt.kid);
    switch (lookup.kind) {
      case "found":
        return this.#judge(jwt, lookup.key, cacheKey);
      case "unknown":
        return refuse("unknown_key");
      case "unavailable":
        return refuse("keys_unavailable");
      case "fetching":
        if (!mayWait) return refuse("unknown_key");
        return lookup.done.then(() => this.#verifyJwt(jwt, cacheKey, false));
      default:
        return lookup satisfies never;
    }
  }

  #judge(jwt: ParsedJwt, key: VerificationKey, cacheKey: string): Verdict {
    if (!isSignatureValid(jwt, key)) return refuse("bad_signature");
    const read = readClaims(jwt.payload);
    if (read === undefined) return refuse("malformed");
    const claims = jwt.kid === undefined ? read : { ...read, kid: jwt.kid };
    const refusal = this.#checkKind(jwt, key, claims);
    if (refusal !== undefined) return refuse(refusal);
    const verdict = this.#judgeUse(claims);
    if (verdict.kind === "user") this.#verified.add(cacheKey, claims);
    return verdict;
  }

  #checkKind(jwt: ParsedJwt, key: VerificationKey, claims: Claims): RefusalCode | undefined {
    const { issuer } = this.#options;
    if (jwt.payload["cnf"] !== undefined) return "key_bound";
    if (!isAllowedType(this.#profile, jwt.typ, key.algorithm)) return "wrong_type";
    if (issuer !== undefined && claims.iss !== issuer) return "wrong_issuer";
    const isForUs = claims.aud?.some((audience) => this.#audiences.includes(audience)) ?? false;
    if (this.#audiences.length > 0 && !isForUs) return "wrong_audience";
    return isOfTrustDomain(this.#profile, claims.sub) ? undefined : "wrong_trust_domain";
  }

  #judgeUse(claims: Claims): Verdict {
    const now = this.#options.clock.now() / 1_000;
    if (this.#isExpired(claims)) return refuse("expired");
    if (claims.nbf !== undefined && claims.nbf > now + this.#leewaySeconds) {
      return refuse("not_yet_valid");
    }
    if (this.#options.isRevoked?.(claims) === true) return refuse("revoked");
    return { kind: "user", claims };
  }

  #isExpired(claims: Claims): boolean {
    return claims.exp + this.#leewaySeconds <= this.#options.clock.now() / 1_000;
  }
}

function checkBinding(
  profile: TokenProfile,
  issuer: string | undefined,
  audience: string | readonly string[] | undefined,
): void {
  const hasAudience = audience !== undefined && audience.length > 0;
  switch (profile.kind) {
    case "access-token":
      if (!issuer || !hasAudience) {
        throw new TypeError("a JWKS requires an issuer and an audience");
      }
      return;
    case "jwt-svid":
      if (!hasAudience) throw new TypeError("JWT-SVIDs require an audience");
      return;
    case "unbound":
      return;
    default:
      profile satisfies never;
  }
}

// https://spiffe.io/docs/latest/spiffe-specs/jwt-svid/ section 2.1 has a list of its own, without EdDSA.
function isAllowedAlgorithm(profile: TokenProfile, algorithm: string): boolean {
  return isKeySetAlgorithm(algorithm) && (profile.kind !== "jwt-svid" || algorithm !== "EdDSA");
}

function isAllowedType(
  profile: TokenProfile,
  typ: string | undefined,
  algorithm: JwtAlgorithm,
): boolean {
  switch (profile.kind) {
    case "access-token":
      // RFC 9068 section 4: other tokens of the issuer, such as ID tokens, must not be accepted as access tokens.
      return isAccessTokenType(typ, algorithm);
    case "unbound":
      return true;
    case "jwt-svid":
      // https://spiffe.io/docs/latest/spiffe-specs/jwt-svid/ section 2.3
      return typ === undefined || typ === "jwt" || typ === "jose";
    default:
      return profile satisfies never;
  }
}

// Upstreams may compare paths or resolve them: what is not a SPIFFE ID must not reach them as one.
function isOfTrustDomain(profile: TokenProfile, subject: string | undefined): boolean {
  if (profile.kind !== "jwt-svid") return true;
  const root = `spiffe://${profile.trustDomain}/`;
  if (subject === undefined || subject.length > SPIFFE_ID_CHARACTERS_MAX) return false;
  return subject.startsWith(root) && SPIFFE_PATH.test(subject.slice(root.length));
}

// Tokens signed with a shared secret are often plain JWTs; RFC 8725 section 3.11 applies to all other types.
function isAccessTokenType(typ: string | undefined, algorithm: JwtAlgorithm): boolean {
  const type = typ?.replace(/^application\//, "");
  if (type === "at+jwt") return true;
  return algorithm === "HS256" && (type === undefined || type === "jwt");
}

// As text: converting it to a Buffer would cost more than the hash.
function digest(token: string): string {
  return hash("sha256", token, "base64");
}

function refuse(code: RefusalCode): Verdict {
  const reason = REASONS[code];
  return {
    kind: "refused",
    code,
    detail: UNVERIFIED.has(code) ? UNVERIFIED_DETAIL : reason,
    reason,
  };
}
