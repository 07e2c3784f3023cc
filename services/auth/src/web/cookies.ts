// Cookies of the service, bound to its host and inaccessible to scripts.
import type { HeaderReader } from "@platform/kernel/http";

/** Lifetime of a device mark. */
export const DEVICE_MARK_MS = 365 * 86_400_000;

/** Reads and formats cookies; on https with the prefix `__Host-`, which browsers accept from this host only. */
export class Cookies {
  readonly #isSecure: boolean;

  constructor(publicUrl: string) {
    this.#isSecure = publicUrl.startsWith("https:");
  }

  /** The value of a cookie; `undefined` if it is missing or sent more than once. */
  read(headers: HeaderReader, name: CookieName): string | undefined {
    const wanted = `${this.#nameOf(name)}=`;
    const found = (headers.get("cookie") ?? "")
      .split(";")
      .map((part) => part.trim())
      .filter((part) => part.startsWith(wanted));
    return found.length === 1 ? found[0]!.slice(wanted.length) : undefined;
  }

  /** A `Set-Cookie` value; `maxAgeMs` 0 deletes the cookie, `undefined` makes it a session cookie. */
  format(name: CookieName, value: string, maxAgeMs: number | undefined): string {
    const age = maxAgeMs === undefined ? "" : `; Max-Age=${Math.floor(maxAgeMs / 1000)}`;
    const secure = this.#isSecure ? "; Secure" : "";
    return `${this.#nameOf(name)}=${value}; Path=/; HttpOnly; SameSite=Lax${age}${secure}`;
  }

  #nameOf(name: CookieName): string {
    return this.#isSecure ? `__Host-${name}` : name;
  }
}

/** Names of the cookies. */
export type CookieName =
  | "platform_session"
  | "platform_device"
  /** Identifies the browser; CSRF tokens are bound to it. */
  | "platform_browser"
  /** The language that an application requested for the pages of its authorization. */
  | "platform_language"
  /** The token of a sign-in that waits for its second factor. */
  | "platform_pending";
