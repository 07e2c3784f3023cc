// The route of a path with segment parameters (`;v=1`).
import { isDeepStrictEqual } from "node:util";
import type { CompiledRoute } from "../exchange/exchange.ts";
import type { PathScan } from "../exchange/path-scan.ts";
import type { RouteTable } from "./route-table.ts";

/** A path with segment parameters, and the routes that it may have. */
export interface ParameterPath {
  table: RouteTable<CompiledRoute>;
  /** The path as it was sent. */
  sent: PathScan;
  /** The route that matches it as it was sent. */
  literal: CompiledRoute | undefined;
  /** Method of the request; read only if the table has variants. */
  method: string;
  findRoute: (scan: PathScan) => CompiledRoute | undefined;
  isInternal: (scan: PathScan) => boolean;
}

/**
 * The route of a path with segment parameters: the one that matches without them, because many upstreams drop them before
 * they look for a resource. Refused if the two paths differ in access control. `scan` reads the path without parameters.
 */
export function findBareRoute(
  { table, sent, literal, method, findRoute, isInternal }: ParameterPath,
  scan: PathScan,
): CompiledRoute | undefined | "refused" {
  const path = sent.readBarePath();
  const fault = scan.read(path, 0, path.length, table.prefixBytesMax);
  const found = fault === null ? findRoute(scan) : undefined;
  const choose = (route: CompiledRoute | undefined, matched: PathScan): CompiledRoute | undefined =>
    route === undefined || !table.hasVariants
      ? route
      : (table.chooseVariant(route, matched, method) ?? route);
  const bare = choose(found, scan);
  const chosen = choose(literal, sent);
  const isOwn = fault === null && isInternal(scan);
  if (fault === null && !isOwn && found === literal && bare === chosen) return literal;
  if (!isOwn && bare !== undefined && isSameEntry(chosen, bare)) return found;
  return "refused";
}

// The prefix can only be stripped from, or a raw path forwarded below, a path that literally starts with it.
function isSameEntry(literal: CompiledRoute | undefined, bare: CompiledRoute): boolean {
  const { auth, steps, stripPrefix, rawPath } = bare.spec;
  if (stripPrefix || rawPath) return false;
  if (literal === undefined) return true;
  return isDeepStrictEqual(literal.spec.auth, auth) && isDeepStrictEqual(literal.spec.steps, steps);
}
