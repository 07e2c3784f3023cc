// Codes that users type: TOTP (RFC 6238), codes that are sent, and backup codes.
import { createHmac, randomBytes, randomInt, timingSafeEqual } from "node:crypto";
import { generateSync } from "otplib";

const PERIOD_SECONDS = 30;
/** Allowed clock skew in time steps (RFC 6238 section 5.2). */
const STEPS_APART = [0, -1, 1] as const;
const BACKUP_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789";
const BACKUP_CHARS = 10;
const SEPARATOR = /[\s\p{Pd}\p{Cf}\u2212]/gu;

/** The time step that the code is valid for; `undefined` for an invalid code. */
export function findTotpStep(secret: string, code: string, nowMs: number): number | undefined {
  const now = Math.floor(nowMs / 1000 / PERIOD_SECONDS);
  let found: number | undefined;
  // All steps are checked, so that the duration does not reveal the matching one.
  for (const apart of STEPS_APART) {
    const right = generateSync({ secret, epoch: (now + apart) * PERIOD_SECONDS });
    if (isEqual(right, code) && found === undefined) found = now + apart;
  }
  return found;
}

/** A code of six digits, for messages. */
export function createSentCode(): string {
  return String(randomInt(1_000_000)).padStart(6, "0");
}

/** `abcde-fghjk`: about 49 random bits, without letters that look alike. */
export function createBackupCode(): string {
  const chars = Array.from({ length: BACKUP_CHARS }, () =>
    BACKUP_ALPHABET.charAt(randomInt(BACKUP_ALPHABET.length)),
  ).join("");
  return `${chars.slice(0, 5)}-${chars.slice(5)}`;
}

/**
 * A typed code as codes are stored: without blanks and dashes, which apps and messages show between groups, in lower case,
 * with full-width characters as plain ones.
 */
export function normalizeCode(text: string): string {
  return text.normalize("NFKC").replaceAll(SEPARATOR, "").toLowerCase();
}

/** The normalised code; `undefined` if it cannot be a backup code. */
export function readBackupCode(text: string): string | undefined {
  const code = normalizeCode(text);
  return code.length === BACKUP_CHARS &&
    Array.from(code).every((char) => BACKUP_ALPHABET.includes(char))
    ? code
    : undefined;
}

/** Derives the key of code hashes from the service's secret. */
export function deriveCodeKey(secret: Buffer): Buffer {
  return createHmac("sha256", secret).update("one-time codes").digest();
}

/** The stored hash of a code; `place` is the factor or user that it belongs to. */
export function hashCode(key: Buffer, place: string, code: string): string {
  return createHmac("sha256", key).update(`${place}\0${code}`).digest("base64url");
}

/** Twenty random bytes in Base32, the form that authenticator apps accept. */
export function createTotpSecret(): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  // The alphabet's 32 letters divide 256, so each is equally likely.
  return Array.from(randomBytes(32), (byte) => alphabet.charAt(byte & 31)).join("");
}

function isEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
