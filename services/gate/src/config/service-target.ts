// Targets that service discovery resolves: `service://NAME[/path][?scheme=https]`.

/** Parts of such a target. */
export interface ServiceTarget {
  name: string;
  /** Prepended to the forwarded path; "" or starts with `/`. */
  path: string;
  /** Scheme of addresses without one. */
  scheme: "http" | "https";
}

const PREFIX = "service://";
const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,60}[A-Za-z0-9])?$/;
const PATH = /^\/[\x21-\x7e]*$/;

/** True for a text with the scheme of services. */
export function isServiceTarget(target: string): boolean {
  return target.toLowerCase().startsWith(PREFIX);
}

/** Parses such a target; undefined if it is malformed. */
export function parseServiceTarget(target: string): ServiceTarget | undefined {
  if (!target.startsWith(PREFIX)) return undefined;
  const [place = "", query, ...more] = target.slice(PREFIX.length).split("?");
  const slash = place.indexOf("/");
  const name = slash === -1 ? place : place.slice(0, slash);
  const path = slash === -1 ? "" : place.slice(slash);
  const isPath = path === "" || (PATH.test(path) && !path.includes("#"));
  if (!NAME.test(name) || name.includes("..") || !isPath || more.length > 0) return undefined;
  if (query !== undefined && query !== "scheme=http" && query !== "scheme=https") return undefined;
  return {
    name,
    path: path === "/" ? "" : path,
    scheme: query === "scheme=https" ? "https" : "http",
  };
}
