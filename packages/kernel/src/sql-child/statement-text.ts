// The parts of a text in SQL that SQLite's interface does not tell: a second statement, and EXPLAIN.

const EXPLAIN = /^explain(?![\w$\u0080-\uffff])/i;

/** True if a text contains only blanks, comments and semicolons. */
export function isBlank(text: string, from = 0): boolean {
  return skipBlanks(text, from, ";") === text.length;
}

/** True if a statement is an EXPLAIN or an EXPLAIN QUERY PLAN. */
export function isExplanation(text: string): boolean {
  const start = skipBlanks(text, 0, ";");
  return EXPLAIN.test(text.slice(start, start + 8));
}

/** Returns the position of the first character that is not a blank, in a comment, or one of `skipped`. */
function skipBlanks(text: string, from: number, skipped: string): number {
  let at = from;
  while (at < text.length) {
    const character = text[at]!;
    if (" \t\n\f\r\uFEFF".includes(character) || skipped.includes(character)) at += 1;
    else if (text.startsWith("--", at)) at = findEnd(text, "\n", at + 2);
    else if (text.startsWith("/*", at)) at = findEnd(text, "*/", at + 2);
    else break;
  }
  return at;
}

function findEnd(text: string, mark: string, from: number): number {
  const found = text.indexOf(mark, from);
  return found === -1 ? text.length : found + mark.length;
}
