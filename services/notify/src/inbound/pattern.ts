// Patterns of recipient addresses: `*` stands for any characters, in the local part or in the domain.

const STARS_MAX = 8;
const CHARACTERS_MAX = 320;
const PATTERN = /^[a-z0-9!#$%&'*+/=?^_`{|}~.-]+@[a-z0-9*.-]+$/;

/** Returns the reason why a pattern is invalid; undefined if it is valid. */
export function findPatternFault(pattern: string): string | undefined {
  if (pattern.length > CHARACTERS_MAX) return `at most ${CHARACTERS_MAX} characters`;
  if (!PATTERN.test(pattern)) return "a pattern such as support@example.org or *@example.org";
  if (pattern.split("*").length - 1 > STARS_MAX) return `at most ${STARS_MAX} stars`;
  return undefined;
}

/**
 * True if a pattern matches an address, both in lower case. A pattern without `+` in its local part also matches addresses
 * with a tag: `support@example.org` matches `support+42@example.org`.
 */
export function matchesPattern(pattern: string, address: string): boolean {
  const patternAt = pattern.lastIndexOf("@");
  const at = address.lastIndexOf("@");
  if (!matchesGlob(pattern.slice(patternAt + 1), address.slice(at + 1))) return false;
  const wanted = pattern.slice(0, patternAt);
  const local = address.slice(0, at);
  if (matchesGlob(wanted, local)) return true;
  const tagAt = local.indexOf("+");
  return !wanted.includes("+") && tagAt > 0 && matchesGlob(wanted, local.slice(0, tagAt));
}

// The first occurrence of each part is enough, so there is no backtracking.
function matchesGlob(pattern: string, text: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return pattern === text;
  const last = rest.pop()!;
  if (text.length < first.length + last.length) return false;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let from = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, from);
    if (found === -1 || found + part.length > end) return false;
    from = found + part.length;
  }
  return true;
}
