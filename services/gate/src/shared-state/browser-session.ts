// Sessions of browser users: sealed into cookies by the control plane, opened by the workers.
import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";

/** Length of a cookie key in bytes (AES-256). */
export const COOKIE_KEY_BYTES = 32;
/** Path of the gateway's own pages for sign-in. */
export const SIGN_IN_PATH = "/_platform/oidc/";

/** Prefix of cookies that only this host can set, over TLS; it requires the path `/`. */
export const SECURE_COOKIE = "__Host-";
/** Prefix of cookies of sign-ins that wait for their callback. */
export const PENDING_COOKIE = "gate_signin_";

const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Browsers store cookies of up to 4096 bytes with name and attributes. */
const CHUNK_CHARACTERS = 3_600;
const CHUNKS_MAX = 4;

/** A signed-in browser. */
export interface BrowserSession {
  id: string;
  /** The identity provider and client that the session belongs to; see {@link describeOidcClient}. */
  client: string;
  /** Claims of the user's tokens that the gateway uses. */
  claims: Readonly<Record<string, unknown>>;
  /** Names of those that only the access token had: a renewal replaces them by the claims of the new one. */
  accessClaims?: readonly string[];
  /** Seconds since 1970. */
  signedInAt: number;
  /** Seconds since 1970 at which the user must sign in again. */
  endsAt: number;
  /** Seconds since 1970 until which the identity provider has confirmed the session; absent without a refresh token. */
  freshUntil?: number;
  refreshToken?: string;
  /** ID token, a hint for the sign-out at the identity provider; absent if it is too large for a cookie. */
  idToken?: string;
}

/** Identifies a client of an identity provider: routes with equal values share sessions. */
export interface OidcClientId {
  issuer: string;
  clientId: string;
}

/** A short name for a client of an identity provider. */
export function describeOidcClient({ issuer, clientId }: OidcClientId): string {
  const digest = createHash("sha256").update(JSON.stringify([issuer, clientId]));
  return digest.digest("hex").slice(0, 16);
}

/** Encrypts a value for one purpose with the first key. */
export function seal(value: unknown, keys: readonly Uint8Array[], purpose: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", keys[0]!, nonce);
  cipher.setAAD(Buffer.from(purpose));
  const content = Buffer.concat([cipher.update(JSON.stringify(value)), cipher.final()]);
  return Buffer.concat([Buffer.of(VERSION), nonce, content, cipher.getAuthTag()]).toString(
    "base64url",
  );
}

/** Decrypts a value that was sealed for this purpose with one of the keys; undefined for all other texts. */
export function unseal(text: string, keys: readonly Uint8Array[], purpose: string): unknown {
  const bytes = Buffer.from(text, "base64url");
  if (bytes.length < 1 + NONCE_BYTES + TAG_BYTES || bytes[0] !== VERSION) return undefined;
  for (const key of keys) {
    try {
      return JSON.parse(decrypt(bytes, key, purpose)) as unknown;
    } catch {
      // Another key, or not ours.
    }
  }
  return undefined;
}

function decrypt(bytes: Buffer, key: Uint8Array, purpose: string): string {
  const nonce = bytes.subarray(1, 1 + NONCE_BYTES);
  const end = bytes.length - TAG_BYTES;
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(purpose));
  decipher.setAuthTag(bytes.subarray(end));
  const content = bytes.subarray(1 + NONCE_BYTES, end);
  return Buffer.concat([decipher.update(content), decipher.final()]).toString("utf8");
}

/** Name of the session cookie of a client. Over TLS, other hosts and plain connections cannot set it. */
function nameSessionCookie(client: string, isSecure: boolean): string {
  return `${isSecure ? SECURE_COOKIE : ""}gate_${client}`;
}

/**
 * The values of Set-Cookie for a sealed session, in chunks; `undefined` removes the cookie. Throws if it is too large for
 * a browser.
 */
export function formatSessionCookies(
  sealed: string | undefined,
  options: { client: string; isSecure: boolean },
): string[] {
  const name = nameSessionCookie(options.client, options.isSecure);
  const attributes = `; Path=/; HttpOnly; SameSite=Lax${options.isSecure ? "; Secure" : ""}`;
  const chunks = sealed === undefined ? [] : splitText(sealed);
  if (chunks.length > CHUNKS_MAX) throw new Error("the session is too large for cookies");
  // The session contains its own end; without Max-Age it also ends with the browser.
  const set = (index: number): string => {
    const chunk = chunks[index];
    const expiry = chunk === undefined ? "; Max-Age=0" : "";
    return `${nameChunk(name, index)}=${chunk ?? ""}${attributes}${expiry}`;
  };
  // All chunks are written, so that those of a longer session do not remain.
  return Array.from({ length: CHUNKS_MAX }, (_, index) => set(index));
}

/**
 * Splits a Cookie field into the sealed session of a client, "" if there is none, and all cookies of others, without those
 * of sign-ins.
 */
export function splitCookies(
  cookie: string,
  client: string,
  isSecure: boolean,
): { sealed: string; rest: string } {
  const name = nameSessionCookie(client, isSecure);
  const pending = `${isSecure ? SECURE_COOKIE : ""}${PENDING_COOKIE}`;
  const chunks = new Map<string, string>();
  const rest = cookie.split(";").filter((pair) => {
    const at = pair.indexOf("=");
    const key = pair.slice(0, at).trim();
    if (key.startsWith(pending)) return false;
    if (key !== name && !key.startsWith(`${name}.`)) return pair.trim() !== "";
    chunks.set(key, pair.slice(at + 1).trim());
    return false;
  });
  let sealed = "";
  for (let index = 0; index < CHUNKS_MAX; index++)
    sealed += chunks.get(nameChunk(name, index)) ?? "";
  return { sealed, rest: rest.map((pair) => pair.trim()).join("; ") };
}

/** Names of the cookies of sign-ins that have not ended, in the order of the field: browsers send the oldest first. */
export function listPendingCookies(cookie: string, isSecure: boolean): string[] {
  const prefix = `${isSecure ? SECURE_COOKIE : ""}${PENDING_COOKIE}`;
  const names = cookie.split(";").map((pair) => pair.split("=")[0]!.trim());
  return names.filter((name) => name.startsWith(prefix));
}

/** The clients of the sessions in a Cookie field. */
export function listSessions(cookie: string, isSecure: boolean): string[] {
  const name = new RegExp(`^${nameSessionCookie("([0-9a-f]{16})", isSecure)}$`);
  const found = cookie.split(";").flatMap((pair) => {
    const client = name.exec(pair.split("=")[0]!.trim())?.[1];
    return client === undefined ? [] : [client];
  });
  return [...new Set(found)];
}

function nameChunk(name: string, index: number): string {
  return index === 0 ? name : `${name}.${index}`;
}

function splitText(text: string): string[] {
  const chunks: string[] = [];
  for (let at = 0; at < text.length; at += CHUNK_CHARACTERS) {
    chunks.push(text.slice(at, at + CHUNK_CHARACTERS));
  }
  return chunks;
}
