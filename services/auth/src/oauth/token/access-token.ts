// Verification of access tokens with the key ring.
import { hash } from "node:crypto";
import { isSignatureValid, parseJwt } from "@platform/kernel/identity";
import type { Clock } from "@platform/kernel/time";
import type { KeyRing } from "../../key/key-ring.ts";
import type { RevocationList } from "./revocation-list.ts";

/** Claims of an access token (RFC 9068). */
export interface AccessTokenClaims {
  iss: string;
  sub: string;
  aud: string;
  /** Seconds since 1970. */
  exp: number;
  iat: number;
  jti: string;
  client_id: string;
  scope?: string;
  sid?: string;
  /** Expiry of the session when the token was issued, in seconds since 1970. */
  session_exp?: number;
  username?: string;
  roles: string[];
  tenant?: string;
  policy_version: number;
  /** The user's epoch at issue time. */
  epoch?: number;
  auth_time?: number;
  acr?: string;
  amr?: string[];
  cnf?: { jkt?: string };
  act?: Actor;
}

/** The party that acts for the subject (RFC 8693 section 4.1), possibly on behalf of another actor. */
export interface Actor {
  sub: string;
  act?: Actor;
}

/** A valid token. */
export interface VerifiedAccessToken {
  readonly claims: AccessTokenClaims;
  readonly kid: string;
}

const TOKEN_CHARACTERS_MAX = 16_384;
const CACHE_MAX = 10_000;
const SEGMENTS_PATTERN = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/** True if the token has the form of an access token rather than of a refresh token. */
export function isJwt(token: string): boolean {
  return SEGMENTS_PATTERN.test(token);
}

/** Verifies access tokens, including revocation. */
export class AccessTokenVerifier {
  readonly #keys: KeyRing;
  readonly #revocations: RevocationList;
  readonly #issuer: string;
  readonly #clock: Clock;
  /** Digest of the token → its claims. The signature is checked once, everything else at each use. */
  readonly #verified = new Map<string, VerifiedAccessToken>();

  constructor(options: {
    keys: KeyRing;
    revocations: RevocationList;
    issuer: string;
    clock: Clock;
  }) {
    this.#keys = options.keys;
    this.#revocations = options.revocations;
    this.#issuer = options.issuer;
    this.#clock = options.clock;
  }

  /** The claims of a valid token; `undefined` for any other text. */
  async verify(token: string): Promise<VerifiedAccessToken | undefined> {
    const signed = await this.verifySignature(token);
    if (signed === undefined) return undefined;
    const { claims, kid } = signed;
    if (claims.exp <= this.#clock.now() / 1_000) return undefined;
    const { jti, client_id, sid, sub, epoch } = claims;
    if (await this.#revocations.isRevoked({ jti, kid, client_id, sid, sub, epoch }))
      return undefined;
    return signed;
  }

  /** The claims of a token signed with a published key, even if it has expired or was revoked. */
  async verifySignature(token: string): Promise<VerifiedAccessToken | undefined> {
    if (token.length > TOKEN_CHARACTERS_MAX) return undefined;
    const digest = hash("sha256", token, "base64");
    const known = this.#verified.get(digest);
    if (known !== undefined) return this.#keys.peek(known.kid) === undefined ? undefined : known;
    const found = await this.#check(token);
    if (found === undefined) return undefined;
    if (this.#verified.size >= CACHE_MAX) {
      const oldest = this.#verified.keys().next();
      if (oldest.done !== true) this.#verified.delete(oldest.value);
    }
    this.#verified.set(digest, found);
    return found;
  }

  async #check(token: string): Promise<VerifiedAccessToken | undefined> {
    const jwt = parseJwt(token);
    if (jwt?.typ !== "at+jwt" || jwt.kid === undefined) return undefined;
    const key = await this.#keys.find(jwt.kid);
    if (key === undefined) return undefined;
    if (!isSignatureValid(jwt, { algorithm: key.algorithm, key: key.publicKey })) return undefined;
    // A valid signature guarantees the shape of the claims; only the issuer may differ.
    const claims = jwt.payload as unknown as AccessTokenClaims;
    return claims.iss === this.#issuer ? { claims, kid: jwt.kid } : undefined;
  }
}
