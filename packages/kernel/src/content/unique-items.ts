// `uniqueItems` of JSON Schema in time that is proportional to the items, not to their pairs.

/** True if no two items are equal as JSON values: the order of members does not matter. */
export function hasUniqueItems(items: readonly unknown[]): boolean {
  const known = new Set<string>();
  for (const item of items) known.add(JSON.stringify(item, sortMembers));
  return known.size === items.length;
}

function sortMembers(_name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}
