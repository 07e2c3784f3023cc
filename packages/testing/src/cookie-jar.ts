// A browser's cookie store: cookies by name, sent to their paths.

/** The cookies of one browser profile, for one site. */
export class CookieJar {
  readonly #cookies = new Map<string, { value: string; path: string }>();

  /** The `Cookie` header of a request to the URL; empty without cookies. */
  format(url: URL): string {
    return [...this.#cookies]
      .filter(([, { path }]) => url.pathname.startsWith(path))
      .map(([name, { value }]) => `${name}=${value}`)
      .join("; ");
  }

  /** Applies the `Set-Cookie` headers of a response. */
  keep(response: Response): void {
    for (const line of response.headers.getSetCookie()) this.#keepLine(line);
  }

  /** The value of a cookie. */
  read(name: string): string | undefined {
    return this.#cookies.get(name)?.value;
  }

  /** Changes a cookie, or deletes it. */
  set(name: string, value: string | undefined): void {
    if (value === undefined) this.#cookies.delete(name);
    else this.#cookies.set(name, { value, path: "/" });
  }

  #keepLine(line: string): void {
    const [pair = "", ...attributes] = line.split(";").map((part) => part.trim());
    const name = pair.slice(0, pair.indexOf("="));
    const value = pair.slice(name.length + 1);
    const read = (key: string): string | undefined =>
      attributes.find((item) => item.toLowerCase().startsWith(`${key}=`))?.slice(key.length + 1);
    const isGone = read("max-age") === "0" || Date.parse(read("expires") ?? "") < Date.now();
    if (value === "" || isGone) this.#cookies.delete(name);
    else this.#cookies.set(name, { value, path: read("path") ?? "/" });
  }
}
