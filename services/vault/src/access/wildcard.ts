// Matching with `*` and `?`, in time linear in pattern times text at worst: no backtracking beyond the last star.

/** Stand in patterns for the characters themselves: code points that Unicode keeps for such use inside a program. */
const LITERAL_STAR = "\ufdd0";
const LITERAL_QUESTION_MARK = "\ufdd1";

/** A text as a pattern that matches it alone. */
export function escapeWildcards(text: string): string {
  return text.replaceAll("*", LITERAL_STAR).replaceAll("?", LITERAL_QUESTION_MARK);
}

/** Whether `text` as a whole matches `pattern`. */
export function matchesWildcard(pattern: string, text: string): boolean {
  let at = 0;
  let patternAt = 0;
  let starAt = -1;
  let resumeAt = 0;
  while (at < text.length) {
    const char = pattern[patternAt];
    if (char === "*") {
      starAt = patternAt;
      patternAt += 1;
      resumeAt = at;
    } else if (char === "?" || (char !== undefined && isSame(char, text[at]!))) {
      patternAt += 1;
      at += 1;
    } else if (starAt >= 0) {
      patternAt = starAt + 1;
      resumeAt += 1;
      at = resumeAt;
    } else {
      return false;
    }
  }
  while (pattern[patternAt] === "*") patternAt += 1;
  return patternAt === pattern.length;
}

function isSame(char: string, given: string): boolean {
  if (char === LITERAL_STAR) return given === "*";
  return char === LITERAL_QUESTION_MARK ? given === "?" : char === given;
}
