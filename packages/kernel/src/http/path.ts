// Paths: the legacy form, and the notations of the router and of OpenAPI.

/**
 * The path that is meant: `/api/…` without a version is `/api/v1/…`. The documentation has its own, unversioned place.
 */
export function mapLegacyPath(path: string): string {
  if (!path.startsWith("/api/") || /^\/api\/(?:v\d+|docs)(?:\/|$)/.test(path)) return path;
  return `/api/v1/${path.slice("/api/".length)}`;
}

/** `/a/{id}` and `/a/{rest*}` (all that follows, slashes included) as the router writes them. */
export function toRouterPath(path: string): string {
  return path.replaceAll(/\{(\w+)(\*?)\}/g, (_match, name: string, rest: string) =>
    rest === "" ? `:${name}` : `:${name}{.+}`,
  );
}

/** As OpenAPI writes it, which has no word for "all that follows". */
export function toDocumentedPath(path: string): string {
  return path.replaceAll("*}", "}");
}

/** Orders paths so that the one that says more is tried first: text before parameter before rest, left to right. */
export function compareSpecificity(a: string, b: string): number {
  const left = a.split("/");
  const right = b.split("/");
  for (let i = 0; i < Math.max(left.length, right.length); i += 1) {
    const order = rankSegment(left[i]) - rankSegment(right[i]);
    if (order !== 0) return order;
  }
  return 0;
}

function rankSegment(segment: string | undefined): number {
  if (segment === undefined) return 3;
  if (!segment.startsWith("{")) return 0;
  return segment.endsWith("*}") ? 2 : 1;
}
