// Parses the URLs of targets. Many routes share a target, and parsing its URL for each of them would slow down reloads.

/** Parts of a target's URL. */
export interface TargetUrl {
  readonly origin: string;
  /** Host and port as in a Host field: without the default port. */
  readonly host: string;
  /** Without a trailing slash; may be empty. */
  readonly path: string;
}

/** Maximum number of cached URLs; a full cache is cleared. */
const URLS_MAX = 4_096;

/** Parses URLs and caches their parts. One per worker. */
export class TargetUrls {
  readonly #parsed = new Map<string, TargetUrl>();

  /** Throws a TypeError on an invalid URL. */
  parse(text: string): TargetUrl {
    const known = this.#parsed.get(text);
    if (known !== undefined) return known;
    const { origin, host, pathname } = new URL(text);
    const parsed = { origin, host, path: pathname.replace(/\/+$/, "") };
    if (this.#parsed.size >= URLS_MAX) this.#parsed.clear();
    this.#parsed.set(text, parsed);
    return parsed;
  }
}
