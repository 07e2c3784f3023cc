// The place of a member in a JSON text, for faults that a service names by a path.
import type { EditorProblem } from "./editor-text.ts";

/** Deeper than any document that a service accepts. */
const DEPTH_MAX = 100;
const TOKEN = /\s*(?:([{}[\],:])|("(?:[^"\\]|\\.)*")|([^\s{}[\],:"]+))/y;

interface Level {
  /** Segment of the path: a name, or an index. */
  segment: string;
  isList: boolean;
  index: number;
}

/**
 * Finds the line and column of the member that a dotted path names, `Rules.0.Status`, or of the nearest one around it that
 * the text has. Works on texts that are not complete.
 */
function findJsonPlace(text: string, path: string): { line: number; column: number } {
  let best = { offset: Math.max(0, text.search(/\S/)), length: -1 };
  const levels: Level[] = [];
  let isName = false;
  TOKEN.lastIndex = 0;
  for (let found = TOKEN.exec(text); found !== null; found = TOKEN.exec(text)) {
    if (levels.length > DEPTH_MAX) break;
    const [whole, mark, quoted] = found;
    const offset = found.index + whole.length - whole.trimStart().length;
    const top = levels.at(-1);
    if (mark === undefined || mark === "{" || mark === "[") {
      if (top?.isList === true) top.segment = String(top.index);
      if (isName && quoted !== undefined && top !== undefined) top.segment = readName(quoted);
      if (isName || top?.isList === true) {
        const here = levels.map(({ segment }) => segment).join(".");
        const isAround = path === here || path.startsWith(`${here}.`);
        if (isAround && here.length > best.length) best = { offset, length: here.length };
      }
      isName = false;
    }
    if (mark === "{" || mark === "[") {
      levels.push({ segment: "", isList: mark === "[", index: 0 });
      isName = mark === "{";
    } else if (mark === "}" || mark === "]") {
      levels.pop();
      isName = false;
    } else if (mark === "," && top !== undefined) {
      top.index += 1;
      isName = !top.isList;
    }
  }
  const before = text.slice(0, best.offset).split("\n");
  return { line: before.length, column: before.at(-1)!.length + 1 };
}

/** Faults of a document as problems of its text. */
export function placeFaults(
  text: string,
  faults: readonly { path: string; message: string }[],
): EditorProblem[] {
  return faults.map(({ path, message }) => ({ ...findJsonPlace(text, path), message }));
}

function readName(quoted: string): string {
  try {
    return String(JSON.parse(quoted));
  } catch {
    return quoted.slice(1, -1);
  }
}
