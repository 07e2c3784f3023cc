// Canonical JSON for fingerprints, entity tags and checksums.

/** Serializes JSON with sorted keys: equal values produce equal texts. */
export function stringifySorted(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
