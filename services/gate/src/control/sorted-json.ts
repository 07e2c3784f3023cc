// One text for equal values: what fingerprints, entity tags and checksums are made of.

/** JSON with sorted keys: equal texts for equal values. */
export function stringifySorted(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
