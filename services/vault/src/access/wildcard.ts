// Matching with `*` and `?`. The text between two stars is searched for once, from the end of the previous match.

/** Stand-ins for literal `*` and `?` in patterns: Unicode noncharacters, which are reserved for internal use. */
const LITERAL_STAR = "\ufdd0";
const LITERAL_QUESTION_MARK = "\ufdd1";
const SPECIAL = /[?\ufdd0\ufdd1]/;

/** Escapes a text, so that it matches itself only. */
export function escapeWildcards(text: string): string {
  return text.replaceAll("*", LITERAL_STAR).replaceAll("?", LITERAL_QUESTION_MARK);
}

/** True if all of `text` matches `pattern`. */
export function matchesWildcard(pattern: string, text: string): boolean {
  const star = pattern.indexOf("*");
  if (star < 0) return pattern.length === text.length && isAt(pattern, text, 0);
  const pieces = pattern.split("*");
  const head = pieces[0]!;
  const tail = pieces.at(-1)!;
  const end = text.length - tail.length;
  if (end < head.length || !isAt(head, text, 0) || !isAt(tail, text, end)) return false;
  let at = head.length;
  for (let index = 1; index < pieces.length - 1; index += 1) {
    const piece = pieces[index]!;
    const found = find(piece, text, at);
    at = found + piece.length;
    if (found < 0 || at > end) return false;
  }
  return true;
}

/** True if all of `text` matches a beginning of `pattern`: with the right continuation it matches the whole. */
export function matchesBeginning(pattern: string, text: string): boolean {
  const short = pattern.replaceAll(/\*{2,}/g, "*");
  // Each character but a star matches one of the text, so longer beginnings cannot match.
  for (let length = 0; length <= Math.min(short.length, 2 * text.length + 1); length += 1) {
    if (matchesWildcard(short.slice(0, length), text)) return true;
  }
  return false;
}

// The engine's search takes linear time; comparing character by character would take quadratic time.
function find(piece: string, text: string, from: number): number {
  if (!SPECIAL.test(piece)) return text.indexOf(piece, from);
  for (let at = from; at + piece.length <= text.length; at += 1) {
    if (isAt(piece, text, at)) return at;
  }
  return -1;
}

function isAt(piece: string, text: string, at: number): boolean {
  for (let index = 0; index < piece.length; index += 1) {
    const char = piece[index]!;
    if (char !== "?" && !isSame(char, text[at + index])) return false;
  }
  return true;
}

function isSame(char: string, given: string | undefined): boolean {
  if (char === LITERAL_STAR) return given === "*";
  return char === LITERAL_QUESTION_MARK ? given === "?" : char === given;
}
