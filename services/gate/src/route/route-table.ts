// Routes a request: to an internal route, otherwise to the route with the longest prefix.
import type { InternalRoute } from "../shared-state/index.ts";
import type { PathScan } from "./path-scan.ts";
import { encodePrefix, PrefixTable, type EncodedPrefix } from "./prefix-table.ts";
import { forEachInSlices } from "./slices.ts";

/** The properties of a route that the table requires. */
export interface RouteEntry {
  readonly encodedPrefix: EncodedPrefix;
  readonly host?: string | undefined;
}

/** Immutable route table; each change builds a new one from the same route objects. */
export class RouteTable<R extends RouteEntry> {
  /** Length in bytes of the longest prefix: {@link PathScan} sets marks up to here. */
  readonly prefixBytesMax: number;
  /** True if a route has a host, so that the host of requests matters. */
  readonly hasHosts: boolean;
  readonly #internalExact: PrefixTable<InternalRoute>;
  readonly #internalBelow: PrefixTable<InternalRoute>;
  readonly #anyHost: PrefixTable<R>;
  readonly #byHost: ReadonlyMap<string, PrefixTable<R>>;

  /** Builds the table in slices. Routes are unique by (host, prefix), internal routes by (path, match). */
  static async build<E extends RouteEntry>(
    routes: Iterable<E>,
    internalRoutes: readonly InternalRoute[],
  ): Promise<RouteTable<E>> {
    const groups = new Map<string, [EncodedPrefix, E][]>([["", []]]);
    await forEachInSlices(routes, (route) => {
      const host = route.host?.toLowerCase() ?? "";
      const group = groups.get(host);
      if (group === undefined) groups.set(host, [[route.encodedPrefix, route]]);
      else group.push([route.encodedPrefix, route]);
    });
    const byHost = new Map<string, PrefixTable<E>>();
    for (const [host, group] of groups) byHost.set(host, await PrefixTable.build(group));
    const own = (match: InternalRoute["match"]): Promise<PrefixTable<InternalRoute>> => {
      const matching = internalRoutes.filter((path) => path.match === match);
      return PrefixTable.build(matching.map((path) => [encodePrefix(path.path), path]));
    };
    return new RouteTable(byHost, await own("exact"), await own("below"));
  }

  private constructor(
    byHost: Map<string, PrefixTable<R>>,
    internalExact: PrefixTable<InternalRoute>,
    internalBelow: PrefixTable<InternalRoute>,
  ) {
    this.#internalExact = internalExact;
    this.#internalBelow = internalBelow;
    this.#anyHost = byHost.get("")!;
    this.prefixBytesMax = Math.max(internalExact.prefixBytesMax, internalBelow.prefixBytesMax);
    for (const { prefixBytesMax } of byHost.values()) {
      this.prefixBytesMax = Math.max(this.prefixBytesMax, prefixBytesMax);
    }
    byHost.delete("");
    this.#byHost = byHost;
    this.hasHosts = byHost.size > 0;
  }

  /** The internal route of a scanned path, or undefined. */
  findInternalRoute(scan: PathScan): InternalRoute | undefined {
    const last = scan.marks - 1;
    if (last >= 0 && scan.markLengths[last] === scan.end - scan.start) {
      const exact = this.#internalExact.findAt(scan, last);
      if (exact !== undefined) return exact;
    }
    return this.#internalBelow.find(scan);
  }

  /**
   * The route with the longest prefix; of two equal prefixes, the one with the host wins. `host` is lower case without a
   * port, and ignored if {@link hasHosts} is false.
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
