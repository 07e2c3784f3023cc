// Lists of entity tags in conditional requests (RFC 9110 section 8.8.3).

const HEADER_CHARACTERS_MAX = 4_096;
const TAG = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g;

/**
 * True if a field with a list of entity tags contains `current`, or is `*`. `strong`: weak tags match nothing
 * (If-Match, If-Range); `weak`: weak and strong forms of a tag are equal (If-None-Match).
 */
export function matchesTag(field: string, current: string, comparison: "strong" | "weak"): boolean {
  if (field.trim() === "*") return true;
  const tags: readonly string[] =
    field.length > HEADER_CHARACTERS_MAX ? [] : (field.match(TAG) ?? []);
  if (comparison === "strong") return !current.startsWith("W/") && tags.includes(current);
  const opaque = current.replace(/^W\//, "");
  return tags.some((tag) => tag.replace(/^W\//, "") === opaque);
}
