// Methods of routes: each method of a prefix and host belongs to one route.
import { z } from "zod";
import { makeRouteKey } from "../shared-state/index.ts";
import { unset } from "./value.ts";

const METHODS_MAX = 32;
const METHOD = /^[!#$%&'*+.^_`|~0-9A-Z-]{1,64}$/;

/** The field `methods` of a route: sorted and distinct. */
export function methodsField() {
  return unset(
    z
      .array(
        z
          .string()
          .refine((method) => METHOD.test(method), {
            error: "expected a method in upper case",
            params: { code: "http_method" },
          })
          .meta({ pattern: METHOD.source }),
      )
      .max(METHODS_MAX)
      .overwrite((methods) => [...new Set(methods)].sort()),
  ).meta({
    description:
      "methods of the route; together with `prefix` and `host` they identify it; other methods get 405 unless another route with this prefix and host has them; GET includes HEAD",
  });
}

interface RouteMethods {
  readonly host?: string;
  readonly prefix: string;
  readonly methods?: readonly string[];
  readonly variant?: string;
}

/** Finds methods that two routes with the same prefix and host have, other than variants, which their paths tell apart. */
export function findSharedMethods(
  routes: readonly RouteMethods[],
): { index: number; method: string }[] {
  const seen = new Set<string>();
  return routes.flatMap(({ host, prefix, methods = [], variant }, index) => {
    if (variant !== undefined) return [];
    const shared = methods.filter((method) => seen.has(makeRouteKey(host, prefix, [method])));
    for (const method of methods) seen.add(makeRouteKey(host, prefix, [method]));
    const [method] = shared;
    return method === undefined ? [] : [{ index, method }];
  });
}
