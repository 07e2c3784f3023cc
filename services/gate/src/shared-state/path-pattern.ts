// Segments of path patterns, such as `/notes/:id`.

/**
 * Returns what a segment of a pattern stands for: `:name`, `{name}` and `*` for one segment that is not empty, a `*` at
 * the end for the rest of the path, which may be empty; undefined: for itself.
 */
export function readPatternSegment(segment: string, isLast: boolean): "one" | "rest" | undefined {
  if (segment === "*") return isLast ? "rest" : "one";
  return /^:.|^\{.+\}$/.test(segment) ? "one" : undefined;
}
