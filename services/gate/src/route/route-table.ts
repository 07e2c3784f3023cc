// Routes a request: to an internal route, otherwise to the route with the longest prefix.
import type { InternalRoute } from "../shared-state/index.ts";
import type { PathScan } from "../exchange/path-scan.ts";
import type { EncodedPrefix } from "../exchange/exchange.ts";
import { encodePrefix, PrefixTable } from "./prefix-table.ts";
import { forEachInSlices } from "./slices.ts";

/** The properties of a route that the table requires. */
export interface RouteEntry {
  readonly encodedPrefix: EncodedPrefix;
  readonly host?: string | undefined;
  /** Absent: all that no other route with this prefix and host has. */
  readonly methods?: readonly string[] | undefined;
}

/** Immutable route table; each change builds a new one from the same route objects. */
export class RouteTable<R extends RouteEntry> {
  /** Length in bytes of the longest prefix: {@link PathScan} sets marks up to here. */
  readonly prefixBytesMax: number;
  /** True if a route has a host, so that the host of requests matters. */
  readonly hasHosts: boolean;
  /** True if a route has methods: then {@link chooseByMethod} decides between the routes of a prefix. */
  readonly hasMethods: boolean;
  /** Routes with the same prefix and host, by the one that {@link findRoute} returns; empty if no route has methods. */
  readonly #byMethod: ReadonlyMap<R, readonly R[]>;
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
    const byMethod = new Map<E, E[]>();
    const firsts = new Map<string, E>();
    await forEachInSlices(routes, (route) => {
      if (isVariant(route, firsts, byMethod)) return;
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
    return new RouteTable(byHost, byMethod, await own("exact"), await own("below"));
  }

  private constructor(
    byHost: Map<string, PrefixTable<R>>,
    byMethod: ReadonlyMap<R, readonly R[]>,
    internalExact: PrefixTable<InternalRoute>,
    internalBelow: PrefixTable<InternalRoute>,
  ) {
    this.#byMethod = byMethod;
    this.hasMethods = byMethod.size > 0;
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

  /** The route with the prefix and host of `found` that has the method; undefined if there is none. */
  chooseByMethod(found: R, method: string): R | undefined {
    const variants = this.#byMethod.get(found);
    if (variants === undefined) return found;
    const own = method === "HEAD" ? ["HEAD", "GET"] : [method];
    return (
      variants.find(({ methods }) => methods?.some((each) => own.includes(each))) ??
      variants.find(({ methods }) => methods === undefined)
    );
  }

  /** The methods of the routes with the prefix and host of `found`, for Allow. */
  listMethods(found: R): string[] {
    const methods = (this.#byMethod.get(found) ?? []).flatMap((route) => route.methods ?? []);
    return [...new Set(methods.includes("GET") ? [...methods, "HEAD"] : methods)].sort();
  }
}

// A second route with the same prefix and host is not in the prefix table, but beside the first.
function isVariant<E extends RouteEntry>(
  route: E,
  firsts: Map<string, E>,
  byMethod: Map<E, E[]>,
): boolean {
  const name = `${route.host?.toLowerCase() ?? ""} ${Buffer.from(route.encodedPrefix.bytes).toString("latin1")}`;
  const first = firsts.get(name);
  if (first === undefined) {
    firsts.set(name, route);
    if (route.methods !== undefined) byMethod.set(route, [route]);
    return false;
  }
  const variants = byMethod.get(first);
  if (
    route.methods === undefined &&
    (variants ?? [first]).some((other) => other.methods === undefined)
  ) {
    throw new RangeError(`duplicate prefix ${name}`);
  }
  if (variants === undefined) byMethod.set(first, [first, route]);
  else variants.push(route);
  return true;
}
