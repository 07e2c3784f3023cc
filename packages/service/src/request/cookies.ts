// Cookies of requests and responses. RFC 6265

/** Attributes of a cookie. */
export interface CookieOptions {
  /** Lifetime in seconds; 0 deletes the cookie. Without it, the cookie ends with the browser's session. */
  maxAge?: number;
  /** Default `/`. */
  path?: string;
  domain?: string;
  /** Default true: scripts cannot read the cookie. */
  httpOnly?: boolean;
  /** Default true: sent only over HTTPS, and to localhost. */
  secure?: boolean;
  /** Default `lax`. */
  sameSite?: "strict" | "lax" | "none";
}

const NAME = /^[\w!#$%&'*+.^`|~-]{1,256}$/;
const ATTRIBUTE = /^[\x20-\x3a\x3c-\x7e]*$/;
const VALUE_CHARACTERS_MAX = 4_096;

/** Parses the field Cookie. Values are percent-decoded where they are valid; the first of equal names wins. */
export function parseCookies(field: string | undefined): Readonly<Record<string, string>> {
  const cookies = Object.create(null) as Record<string, string>;
  for (const pair of (field ?? "").split(";")) {
    const equals = pair.indexOf("=");
    const name = pair.slice(0, Math.max(0, equals)).trim();
    if (name !== "") cookies[name] ??= decode(pair.slice(equals + 1).trim());
  }
  return cookies;
}

/** Formats a Set-Cookie value; the cookie's value is percent-encoded. Throws a TypeError for invalid attributes. */
export function formatCookie(name: string, value: string, options: CookieOptions = {}): string {
  const { maxAge, path = "/", domain, httpOnly = true, secure = true, sameSite = "lax" } = options;
  if (!NAME.test(name)) throw new TypeError(`cookie "${name}": the name is not allowed`);
  const encoded = encodeURIComponent(value);
  if (encoded.length > VALUE_CHARACTERS_MAX) {
    throw new TypeError(`cookie "${name}": longer than ${VALUE_CHARACTERS_MAX} characters`);
  }
  if (!ATTRIBUTE.test(path) || !ATTRIBUTE.test(domain ?? "")) {
    throw new TypeError(`cookie "${name}": path and domain must be ASCII without ";"`);
  }
  if (maxAge !== undefined && !Number.isInteger(maxAge)) {
    throw new TypeError(`cookie "${name}": maxAge must be whole seconds, not ${maxAge}`);
  }
  const attributes = [
    `${name}=${encoded}`,
    `Path=${path}`,
    domain === undefined ? "" : `Domain=${domain}`,
    maxAge === undefined ? "" : `Max-Age=${maxAge}`,
    httpOnly ? "HttpOnly" : "",
    secure ? "Secure" : "",
    `SameSite=${sameSite[0]!.toUpperCase()}${sameSite.slice(1)}`,
  ];
  return attributes.filter(Boolean).join("; ");
}

function decode(value: string): string {
  const bare = /^"(.*)"$/.exec(value)?.[1] ?? value;
  if (!bare.includes("%")) return bare;
  try {
    return decodeURIComponent(bare);
  } catch {
    return bare;
  }
}
