// Host names of requests.

/**
 * The host of a Host field or authority in lower case, without the port and the trailing dot: `a.example.` must not
 * bypass a route for `a.example`. `[::1]:80` becomes `[::1]`.
 */
export function readHostName(authority: string): string {
  const colon = authority.lastIndexOf(":");
  const hasPort = colon > authority.lastIndexOf("]");
  const name = (hasPort ? authority.slice(0, colon) : authority).toLowerCase();
  return name.endsWith(".") ? name.slice(0, -1) : name;
}
