// Texts that are edited: their languages, and problems with their places.

/** Language of an editor. */
export type EditorLanguage = "json" | "html" | "text";

/** A problem of a text; lines and columns begin at 1. */
export interface EditorProblem {
  line: number;
  column?: number;
  message: string;
}

/** Offset of a problem in a text that may have changed since it was found. */
export function findOffset(text: string, { line, column = 1 }: EditorProblem): number {
  let start = 0;
  for (let n = 1; n < line; n += 1) {
    const end = text.indexOf("\n", start);
    if (end === -1) break;
    start = end + 1;
  }
  const end = text.indexOf("\n", start);
  return Math.min(start + Math.max(1, column) - 1, end === -1 ? text.length : end);
}
