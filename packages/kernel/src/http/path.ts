// Paths: the legacy form, and conversion to the notations of the router and of OpenAPI.

/** Maps legacy paths: `/api/…` without a version is `/api/v1/…`. The path of the documentation has no version. */
export function mapLegacyPath(path: string): string {
  if (!path.startsWith("/api/") || /^\/api\/(?:v\d+|docs)(?:\/|$)/.test(path)) return path;
  return `/api/v1/${path.slice("/api/".length)}`;
}

const PROBES: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);

/** Returns true for health probes and metrics: their responses are short, and matter most under load. */
export function isProbePath(path: string): boolean {
  return PROBES.has(path);
}

/** Converts `/a/{id}` and `/a/{rest*}` (all following segments) to the router's notation. */
export function toRouterPath(path: string): string {
  return path.replaceAll(/\{(\w+)(\*?)\}/g, (_match, name: string, rest: string) =>
    rest === "" ? `:${name}` : `:${name}{.+}`,
  );
}

/** Converts a path to OpenAPI's notation, which cannot express "all following segments". */
export function toDocumentedPath(path: string): string {
  return path.replaceAll("*}", "}");
}

/** Orders paths by specificity, left to right: text before parameter before rest. */
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
