// Tokens of share links and their cookies: signed, so that guesses cost no lookup.
import { createHmac, timingSafeEqual } from "node:crypto";

/** A share link opens a tunnel for its bearer; `cookie` is what a browser keeps after it has opened the link. */
export type TokenPurpose = "link" | "cookie";

/** The contents of a valid token. */
export interface ShareClaims {
  /** Id of the share: a UUID. */
  readonly id: string;
  /** In ms since 1970. */
  readonly expiresAt: number;
}

/** Recognizable for programs that search for leaked secrets. */
export const TOKEN_PREFIX = "pts_";
const ID_BYTES = 16;
const EXPIRY_BYTES = 6;
const CLAIMS_BYTES = ID_BYTES + EXPIRY_BYTES;
const MAC_BYTES = 32;
const TOKEN = /^pts_[A-Za-z0-9_-]{72}$/;

/** Formats a token: `pts_` and base64url of the share's id, its expiry (48 bit) and an HMAC-SHA256. */
export function signToken(
  secret: Buffer,
  purpose: TokenPurpose,
  tunnelId: string,
  { id, expiresAt }: ShareClaims,
): string {
  const claims = Buffer.alloc(CLAIMS_BYTES);
  claims.write(id.replaceAll("-", ""), "hex");
  claims.writeUIntBE(expiresAt, ID_BYTES, EXPIRY_BYTES);
  const mac = computeMac(secret, purpose, tunnelId, claims);
  return TOKEN_PREFIX + Buffer.concat([claims, mac]).toString("base64url");
}

/** The claims of a token that was signed for this purpose and tunnel; undefined for others. Expiry is not checked. */
export function verifyToken(
  secret: Buffer,
  purpose: TokenPurpose,
  tunnelId: string,
  token: string,
): ShareClaims | undefined {
  if (!TOKEN.test(token)) return undefined;
  const bytes = Buffer.from(token.slice(TOKEN_PREFIX.length), "base64url");
  if (bytes.length !== CLAIMS_BYTES + MAC_BYTES) return undefined;
  const claims = bytes.subarray(0, CLAIMS_BYTES);
  const mac = computeMac(secret, purpose, tunnelId, claims);
  if (!timingSafeEqual(mac, bytes.subarray(CLAIMS_BYTES))) return undefined;
  const hex = claims.toString("hex", 0, ID_BYTES);
  return {
    id: hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5"),
    expiresAt: claims.readUIntBE(ID_BYTES, EXPIRY_BYTES),
  };
}

function computeMac(
  secret: Buffer,
  purpose: TokenPurpose,
  tunnelId: string,
  claims: Buffer,
): Buffer {
  return createHmac("sha256", secret).update(`${purpose}\0${tunnelId}\0`).update(claims).digest();
}
