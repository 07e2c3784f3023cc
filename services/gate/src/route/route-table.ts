// Finds who handles a request: one of the gateway's own paths, else the route with the longest prefix.
import type { OwnPath } from "../snapshot/index.ts";
import type { PathScan } from "./path-scan.ts";
import { encodePrefix, PrefixTable, type EncodedPrefix } from "./prefix-table.ts";

/** What the table needs of a route; `R` adds what its owner needs. */
export type RouteEntry = {
  readonly encodedPrefix: EncodedPrefix;
  readonly host?: string | undefined;
};

/** Immutable; built anew from the routes at each change, the routes themselves are passed on. */
export class RouteTable<R extends RouteEntry> {
  /** How far marks have to be set for this table. */
  readonly prefixBytesMax: number;
  /** True where a route names a host, so that the request's has to be read. */
  readonly hasHosts: boolean;
  readonly #ownExact: PrefixTable<OwnPath>;
  readonly #ownBelow: PrefixTable<OwnPath>;
  readonly #anyHost: PrefixTable<R>;
  readonly #byHost = new Map<string, PrefixTable<R>>();

  /** Routes are unique by (host, prefix), own paths by (path, match). */
  constructor(routes: Iterable<R>, ownPaths: readonly OwnPath[]) {
    const groups = new Map<string, [EncodedPrefix, R][]>([["", []]]);
    for (const route of routes) {
      const host = route.host?.toLowerCase() ?? "";
      const group = groups.get(host);
      if (group === undefined) groups.set(host, [[route.encodedPrefix, route]]);
      else group.push([route.encodedPrefix, route]);
    }
    this.#anyHost = new PrefixTable(groups.get("") ?? []);
    for (const [host, group] of groups) {
      if (host !== "") this.#byHost.set(host, new PrefixTable(group));
    }
    this.hasHosts = this.#byHost.size > 0;
    const own = (match: OwnPath["match"]): PrefixTable<OwnPath> => {
      const matching = ownPaths.filter((path) => path.match === match);
      return new PrefixTable(matching.map((path) => [encodePrefix(path.path), path]));
    };
    this.#ownExact = own("exact");
    this.#ownBelow = own("below");
    this.prefixBytesMax = Math.max(
      this.#ownExact.prefixBytesMax,
      this.#ownBelow.prefixBytesMax,
      this.#anyHost.prefixBytesMax,
      ...Array.from(this.#byHost.values(), (table) => table.prefixBytesMax),
    );
  }

  /** The own path that a scanned path is, or undefined. */
  findOwnPath(scan: PathScan): OwnPath | undefined {
    const last = scan.marks - 1;
    if (last >= 0 && scan.markLengths[last] === scan.end - scan.start) {
      const exact = this.#ownExact.findAt(scan, last);
      if (exact !== undefined) return exact;
    }
    return this.#ownBelow.find(scan);
  }

  /**
   * The route with the longest prefix; of two equal prefixes the one that names the host wins. `host` is lower case
   * without a port; it does not matter where {@link hasHosts} is false.
   */
  findRoute(scan: PathScan, host: string): R | undefined {
    const ofHost = this.hasHosts ? this.#byHost.get(host) : undefined;
    if (ofHost === undefined) return this.#anyHost.find(scan);
    for (let mark = scan.marks - 1; mark >= 0; mark--) {
      const route = ofHost.findAt(scan, mark) ?? this.#anyHost.findAt(scan, mark);
      if (route !== undefined) return route;
    }
    return undefined;
  }
}

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
