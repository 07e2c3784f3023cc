// The host name that a request is for.

/**
 * The host of a Host field or authority: lower case, without its port and the root's dot, so that a route for `a.example` is
 * not passed by as `a.example.`; `[::1]:80` gives `[::1]`.
 */
export function readHostName(authority: string): string {
  const colon = authority.lastIndexOf(":");
  const hasPort = colon > authority.lastIndexOf("]");
  const name = (hasPort ? authority.slice(0, colon) : authority).toLowerCase();
  return name.endsWith(".") ? name.slice(0, -1) : name;
}
