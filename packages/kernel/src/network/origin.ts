// Origins of web pages.

/** `scheme://host` and a port, if it is not the scheme's (RFC 6454 section 6.2), as browsers send it in `Origin`. */
const ORIGIN =
  /^[a-z][a-z0-9+.-]*:\/\/(?:\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?)(?::[0-9]{1,5})?$/;

/**
 * True for the serialization of an origin with a host; `null` is none. Patterns with wildcards must be compared with these
 * only: of `https://evil.example#.good.example` a browser would open `evil.example`.
 */
export function isSerializedOrigin(text: string): boolean {
  return ORIGIN.test(text);
}
