// What must not reach a log: decided by a field's name, and by the shape of well-known credentials in text.

/** What stands in the place of a credential. */
export const REDACTED = "[redacted]";

const SECRET_NAME =
  /authorization|passw(?:or)?d|passphrase|secret|token|cookie|credential|api[-_]?key|private[-_]?key|session[-_]?id|signature|\bjwt\b|_jwt|dsn/i;
const AUTH_SCHEME = /\b(bearer|basic|digest|dpop)\s+[A-Za-z0-9._~+/=-]{4,}/gi;
const URL_PASSWORD = /(:\/\/[^\s/:@]{0,256}):[^\s/@]{1,1024}@/g;

/** Names are few and come again with every line. */
const NAMES_MAX = 1_000;
const knownNames = new Map<string, boolean>();

/** Says whether a field of this name may hold a credential. Numbers and booleans under such names are still logged. */
export function isSecretName(name: string): boolean {
  let isSecret = knownNames.get(name);
  if (isSecret === undefined) {
    isSecret = SECRET_NAME.test(name);
    if (knownNames.size < NAMES_MAX) knownNames.set(name, isSecret);
  }
  return isSecret;
}

/** Text without `Authorization` credentials and without passwords in URLs. */
export function redactText(text: string): string {
  let clean = text;
  if (clean.includes("://") && clean.includes("@"))
    clean = clean.replace(URL_PASSWORD, `$1:${REDACTED}@`);
  return clean.replace(AUTH_SCHEME, `$1 ${REDACTED}`);
}
