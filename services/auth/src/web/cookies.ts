// The service's cookies: bound to its host and hidden from scripts.
import type { HeaderReader } from "@platform/kernel/http";

/** How long a browser stays one of the account's devices. */
export const DEVICE_MARK_MS = 365 * 86_400_000;

/** Reads and writes cookies; `__Host-` names on https, which browsers accept from this very host only. */
export class Cookies {
  readonly #isSecure: boolean;

  constructor(publicUrl: string) {
    this.#isSecure = publicUrl.startsWith("https:");
  }

  /** The value; undefined where there is none, or more than one. */
  read(headers: HeaderReader, name: CookieName): string | undefined {
    const wanted = `${this.#nameOf(name)}=`;
    const found = (headers.get("cookie") ?? "")
      .split(";")
      .map((part) => part.trim())
      .filter((part) => part.startsWith(wanted));
    return found.length === 1 ? found[0]!.slice(wanted.length) : undefined;
  }

  /** `Set-Cookie` for the value; `maxAgeMs` 0 removes it, undefined ends with the browser. */
  format(name: CookieName, value: string, maxAgeMs: number | undefined): string {
    const age = maxAgeMs === undefined ? "" : `; Max-Age=${Math.floor(maxAgeMs / 1000)}`;
    const secure = this.#isSecure ? "; Secure" : "";
    return `${this.#nameOf(name)}=${value}; Path=/; HttpOnly; SameSite=Lax${age}${secure}`;
  }

  #nameOf(name: CookieName): string {
    return this.#isSecure ? `__Host-${name}` : name;
  }
}

/** The cookies there are. */
export type CookieName =
  | "platform_session"
  | "platform_device"
  /** Names the browser; what pages send back is bound to it. */
  | "platform_browser"
  /** The language of pages on the way to an application that asked for it. */
  | "platform_language"
  /** A sign-in that waits for its second factor. */
  | "platform_pending";
