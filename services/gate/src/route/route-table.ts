// Routes a request: to an internal route, otherwise to the route with the longest prefix.
import type { InternalRoute } from "../shared-state/index.ts";
import type { PathScan } from "../exchange/path-scan.ts";
import type { PathPatterns } from "../exchange/path-patterns.ts";
import { type Prefixed, PrefixTable } from "./prefix-table.ts";
import { forEachInSlices } from "./slices.ts";

/** The properties of a route that the table requires. */
export interface RouteEntry extends Prefixed {
  readonly host?: string | undefined;
  /** Absent: all that no other route with this prefix and host has. */
  readonly methods?: readonly string[] | undefined;
  /** Absent: all paths below the prefix. */
  readonly patterns?: PathPatterns | undefined;
  /** Set for variants: of those that match, the one with the lowest value decides. */
  readonly specificity?: string | undefined;
}

interface InternalEntry extends Prefixed {
  readonly route: InternalRoute;
}

/** Immutable route table; each change builds a new one from the same route objects. */
export class RouteTable<R extends RouteEntry> {
  /** Length in bytes of the longest prefix: {@link PathScan} sets marks up to here. */
  readonly prefixBytesMax: number;
  /** True if a route has a host, so that the host of requests matters. */
  readonly hasHosts: boolean;
  /** True if a route has methods or patterns: then {@link chooseVariant} decides between the routes of a prefix. */
  readonly hasVariants: boolean;
  /** Routes with the same prefix and host, by the one that {@link findRoute} returns; empty without {@link hasVariants}. */
  readonly #variants: ReadonlyMap<R, readonly R[]>;
  readonly #hasPatterns: boolean;
  readonly #internalExact: PrefixTable<InternalEntry>;
  readonly #internalBelow: PrefixTable<InternalEntry>;
  readonly #anyHost: PrefixTable<R>;
  readonly #byHost: ReadonlyMap<string, PrefixTable<R>>;

  /** Builds the table in slices. Routes are unique by (host, prefix), internal routes by (path, match). */
  static async build<E extends RouteEntry>(
    routes: Iterable<E>,
    internalRoutes: readonly InternalRoute[],
  ): Promise<RouteTable<E>> {
    const anyHost: E[] = [];
    const groups = new Map<string, E[]>([["", anyHost]]);
    await forEachInSlices(routes, (route) => {
      const host = route.host?.toLowerCase() ?? "";
      const group = host === "" ? anyHost : groups.get(host);
      if (group === undefined) groups.set(host, [route]);
      else group.push(route);
    });
    const variants = new Map<E, E[]>();
    const byHost = new Map<string, PrefixTable<E>>();
    for (const [host, group] of groups) {
      const table = await PrefixTable.build(group, (route, first) =>
        addVariant(variants, route, first),
      );
      byHost.set(host, table);
    }
    const own = (match: InternalRoute["match"]): Promise<PrefixTable<InternalEntry>> => {
      const matching = internalRoutes.filter((route) => route.match === match);
      const entries = matching.map((route) => ({ prefix: route.path, route }));
      return PrefixTable.build(entries, refuseSame);
    };
    for (const routes of variants.values()) routes.sort(compareSpecificity);
    return new RouteTable(byHost, variants, await own("exact"), await own("below"));
  }

  private constructor(
    byHost: Map<string, PrefixTable<R>>,
    variants: ReadonlyMap<R, readonly R[]>,
    internalExact: PrefixTable<InternalEntry>,
    internalBelow: PrefixTable<InternalEntry>,
  ) {
    this.#variants = variants;
    this.hasVariants = variants.size > 0;
    this.#hasPatterns = variants
      .values()
      .some((routes) => routes.some(({ patterns }) => patterns !== undefined));
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
      if (exact !== undefined) return exact.route;
    }
    return this.#internalBelow.find(scan)?.route;
  }

  /**
   * The route with the longest prefix; of two equal prefixes, the one with the host wins. A prefix does not count if no
   * route of it has a pattern that matches the path. `host` is lower case without a port, and ignored if {@link hasHosts}
   * is false.
   */
  findRoute(scan: PathScan, host: string): R | undefined {
    const ofHost = this.hasHosts ? this.#byHost.get(host) : undefined;
    if (ofHost === undefined && !this.#hasPatterns) return this.#anyHost.find(scan);
    for (let mark = scan.marks - 1; mark >= 0; mark--) {
      const route =
        this.#admit(ofHost?.findAt(scan, mark), scan) ??
        this.#admit(this.#anyHost.findAt(scan, mark), scan);
      if (route !== undefined) return route;
    }
    return undefined;
  }

  /** The route with the longest prefix among those that name the host. */
  findRouteOfHost(scan: PathScan, host: string): R | undefined {
    const ofHost = this.#byHost.get(host);
    if (ofHost === undefined || !this.#hasPatterns) return ofHost?.find(scan);
    for (let mark = scan.marks - 1; mark >= 0; mark--) {
      const route = this.#admit(ofHost.findAt(scan, mark), scan);
      if (route !== undefined) return route;
    }
    return undefined;
  }

  /** The route with the prefix and host of `found` that has the path and the method; undefined if there is none. */
  chooseVariant(found: R, scan: PathScan, method: string): R | undefined {
    const all = this.#variants.get(found);
    if (all === undefined) return found;
    const variants = this.#hasPatterns ? all.filter((route) => servesPath(route, scan)) : all;
    const own = method === "HEAD" ? ["HEAD", "GET"] : [method];
    return (
      variants.find(({ methods }) => methods?.some((each) => own.includes(each))) ??
      variants.find(({ methods }) => methods === undefined)
    );
  }

  /** The methods of the routes with the prefix and host of `found` that have the path, for Allow. */
  listMethods(found: R, scan: PathScan): string[] {
    const variants = this.#variants.get(found) ?? [];
    const methods = variants.flatMap((route) =>
      servesPath(route, scan) ? (route.methods ?? []) : [],
    );
    return [...new Set(methods.includes("GET") ? [...methods, "HEAD"] : methods)].sort();
  }

  #admit(found: R | undefined, scan: PathScan): R | undefined {
    if (found === undefined || !this.#hasPatterns) return found;
    const variants = this.#variants.get(found);
    return variants === undefined || variants.some((route) => servesPath(route, scan))
      ? found
      : undefined;
  }
}

// Variants come before the other routes, which their methods tell apart.
function compareSpecificity(left: RouteEntry, right: RouteEntry): number {
  const [one = "~", other = "~"] = [left.specificity, right.specificity];
  return one < other ? -1 : one > other ? 1 : 0;
}

function servesPath({ patterns }: RouteEntry, scan: PathScan): boolean {
  return patterns === undefined || patterns.matches(scan.bytes, scan.start, scan.end);
}

// A second route with the same prefix and host is not in the prefix table, but beside the first.
function addVariant<E extends RouteEntry>(byFirst: Map<E, E[]>, route: E, first: E): void {
  const { methods, patterns } = route;
  if (route === first) {
    if (methods !== undefined || patterns !== undefined) byFirst.set(route, [route]);
    return;
  }
  const variants = byFirst.get(first) ?? [first];
  if (methods === undefined && variants.some((other) => other.methods === undefined)) {
    refuseSame(route, first);
  }
  variants.push(route);
  byFirst.set(first, variants);
}

function refuseSame(entry: Prefixed, first: Prefixed): void {
  if (entry !== first) throw new RangeError(`duplicate prefix ${entry.prefix}`);
}
