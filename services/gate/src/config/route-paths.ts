// Path patterns of routes: which paths below its prefix a route serves.
import { z } from "zod";
import { pathPrefix, unset } from "./value.ts";

const PATHS_MAX = 10_000;

/** The field `paths` of a route. */
export function pathsField() {
  return unset(z.array(pathPrefix()).max(PATHS_MAX)).meta({
    description:
      "patterns of whole paths at or below the prefix, such as `/notes/:id`: other paths belong to the next shorter prefix; `:name`, `{name}` and `*` stand for one segment, a `*` at the end for the rest",
  });
}

/** Reports patterns that no path below the prefix matches. */
export function checkPaths(
  {
    prefix,
    paths = [],
  }: { readonly prefix: string; readonly paths?: readonly string[] | undefined },
  context: z.RefinementCtx,
): void {
  const below = prefix.endsWith("/") ? prefix : `${prefix}/`;
  for (const [index, path] of paths.entries()) {
    if (path === prefix || path.startsWith(below)) continue;
    context.addIssue({
      code: "custom",
      path: ["paths", index],
      message: `expected a path at or below the prefix ${prefix}`,
    });
  }
}

/** Reports a variant that would not decide by one path. */
export function checkVariant(
  {
    variant,
    methods = [],
    paths = [],
  }: {
    readonly variant?: string | undefined;
    readonly methods?: readonly string[] | undefined;
    readonly paths?: readonly string[] | undefined;
  },
  context: z.RefinementCtx,
): void {
  if (variant === undefined || (methods.length > 0 && paths.length === 1)) return;
  const message = "requires methods, and exactly one of paths";
  context.addIssue({ code: "custom", path: ["variant"], message });
}
