// Texts that are edited: their languages, and problems with their places.

/** Language of an editor. */
export type EditorLanguage = "json" | "html" | "text";

/** A problem of a text; lines and columns begin at 1. */
export interface EditorProblem {
  line: number;
  column?: number;
  message: string;
}

/** Value of a JSON text, or the problem for which it has none. */
export type ReadJson =
  | { value: unknown; problem?: undefined }
  | { value?: undefined; problem: EditorProblem };

const PLACE = /\s*(?:in JSON )?\(?at (?:position \d+ )?\(?line (\d+) column (\d+).*$/s;

/** Parses JSON; the browser's message says where it fails. */
export function readJson(text: string): ReadJson {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    const { message } = error as SyntaxError;
    return { problem: locateProblem(text, message) };
  }
}

// Chromium: "… in JSON at position 7 (line 2 column 3)"; Firefox: "… at line 2 column 3 of the JSON data".
function locateProblem(text: string, message: string): EditorProblem {
  const found = PLACE.exec(message);
  if (found === null) {
    // "Unexpected end of JSON input" has no place.
    const lines = text.split("\n");
    return { line: lines.length, column: lines.at(-1)!.length + 1, message };
  }
  return {
    line: Number(found[1]),
    column: Number(found[2]),
    message: message.slice(0, found.index),
  };
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
