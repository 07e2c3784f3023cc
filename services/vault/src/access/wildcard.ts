// Matching with `*` and `?`, in time linear in pattern times text at worst: no backtracking beyond the last star.

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
    } else if (char === "?" || (char !== undefined && char === text[at])) {
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
