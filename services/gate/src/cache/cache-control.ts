// Cache-Control of requests and responses (RFC 9111 section 5.2).

/** Longer times are as good as this one (RFC 9111 section 1.2.2). */
export const SECONDS_MAX = 2_147_483_648;
const DIRECTIVE =
  /([!#$%&'*+.^_`|~\w-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,;"]*)))?\s*(?:,|$)/g;

/** Directives by name in lower case; the value is "" without an argument. */
export type Directives = ReadonlyMap<string, string>;

const NONE: Directives = new Map();

/** Parses a field value. The first of two equal directives counts (RFC 9111 section 4.2.1). */
export function parseDirectives(value: string | undefined): Directives {
  if (value === undefined || value === "") return NONE;
  const directives = new Map<string, string>();
  for (const [, name = "", quoted, token] of value.matchAll(DIRECTIVE)) {
    const key = name.toLowerCase();
    if (!directives.has(key)) directives.set(key, quoted ?? token ?? "");
  }
  return directives;
}

/** The delta-seconds of a directive; `undefined` if absent. Invalid ones count as 0, which is stale. */
export function readSeconds(directives: Directives, name: string): number | undefined {
  const value = directives.get(name);
  if (value === undefined) return undefined;
  return /^\d+$/.test(value) ? Math.min(Number(value), SECONDS_MAX) : 0;
}
