// Cookies of the console: the session's, and those of a sign-in at identity.

/** Reads a cookie; undefined if it is missing, or sent more than once: another page of the host may have set one. */
function readCookie(header: string | null | undefined, name: string): string | undefined {
  const start = `${name}=`;
  const found = (header ?? "")
    .split(";")
    .map((part) => part.trim())
    .filter((part) => part.startsWith(start));
  return found.length === 1 ? found[0]!.slice(start.length) : undefined;
}

/** A cookie that scripts cannot read. Cookies do not distinguish ports, so each service's has a name of its own. */
export class ConsoleCookie {
  readonly name: string;
  readonly #attributes: string;

  /** With `isSecure` browsers accept the cookie over https from this host only (`__Host-`). */
  constructor(name: string, options: { isSecure: boolean; sameSite: "Strict" | "Lax" }) {
    this.name = options.isSecure ? `__Host-${name}` : name;
    const secure = options.isSecure ? "; Secure" : "";
    this.#attributes = `; Path=/; HttpOnly; SameSite=${options.sameSite}${secure}`;
  }

  /** The value in a Cookie header. */
  read(header: string | null | undefined): string | undefined {
    return readCookie(header, this.name);
  }

  /** `Set-Cookie` for a value. */
  format(value: string, seconds: number): string {
    return `${this.name}=${value}${this.#attributes}; Max-Age=${seconds}`;
  }

  /** `Set-Cookie` that deletes it. */
  clear(): string {
    return this.format("", 0);
  }
}
