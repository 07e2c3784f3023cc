// Redaction of credentials: by field name, and by the form of well-known credentials in text.

/** Replacement of a credential. */
export const REDACTED = "[redacted]";

const SECRET_NAME =
  /authorization|passw(?:or)?d|passphrase|secret|token|cookie|credential|api[-_]?key|private[-_]?key|session[-_]?id(?!le)|signature|\bjwt\b|_jwt|dsn/i;
const AUTH_SCHEME = /\b(bearer|basic|digest|dpop)\s+[A-Za-z0-9._~+/=-]{4,}/gi;
const URL_PASSWORD = /(:\/\/[^\s/:@]{0,256}):[^\s/@]{1,1024}@/g;

/** Bound of the cache; field names are few and repeat. */
const NAMES_MAX = 1_000;
const knownNames = new Map<string, boolean>();

/** True if a field of this name may contain a credential. Numbers and booleans of such fields are still logged. */
export function isSecretName(name: string): boolean {
  let isSecret = knownNames.get(name);
  if (isSecret === undefined) {
    isSecret = SECRET_NAME.test(name);
    if (knownNames.size < NAMES_MAX) knownNames.set(name, isSecret);
  }
  return isSecret;
}

/** Removes `Authorization` credentials and passwords in URLs from a text. */
export function redactText(text: string): string {
  let clean = text;
  if (clean.includes("://") && clean.includes("@"))
    clean = clean.replace(URL_PASSWORD, `$1:${REDACTED}@`);
  return clean.replace(AUTH_SCHEME, `$1 ${REDACTED}`);
}
