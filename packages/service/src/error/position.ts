// Positions of declarations, for messages.
import { dirname, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const FRAME = /^\s+at (?:.*\()?(file:\/\/[^()]+|\/[^()]+):(\d+):(\d+)\)?$/;

/**
 * Marks the position of the caller outside this package. The result returns it as `path:line:column`, relative to the working
 * directory; "" if unknown. Most positions are never shown, and reading one takes longer than marking it.
 */
export function markPosition(): () => string {
  const mark = new Error("position");
  return () => findPosition(mark.stack ?? "");
}

function findPosition(stack: string): string {
  // The file that runs: the folder of this package, also in its built form.
  const own = `${dirname(dirname(import.meta.filename))}${sep}`;
  for (const line of stack.split("\n").slice(1)) {
    const [, file = "", row, column] = FRAME.exec(line) ?? [];
    // Node has URLs, Bun has paths.
    const path = file.startsWith("file:") ? fileURLToPath(file.replace(/\?.*$/, "")) : file;
    if (path === "" || path.startsWith(own)) continue;
    const short = relative(process.cwd(), path);
    return `${short.startsWith("..") ? path : short}:${row}:${column}`;
  }
  return "";
}
