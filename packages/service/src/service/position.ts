// Positions of declarations, for messages.
import { relative } from "node:path";
import { fileURLToPath } from "node:url";

const FRAME = /^\s+at (?:.*\()?(file:\/\/[^()]+|\/[^()]+):(\d+):(\d+)\)?$/;

/** Returns `path:line:column` of the caller outside this package, relative to the working directory; "" if unknown. */
export function findPosition(): string {
  const own = new URL("..", import.meta.url).href;
  const { stack = "" } = new Error("position");
  for (const line of stack.split("\n").slice(1)) {
    const [, file = "", row, column] = FRAME.exec(line) ?? [];
    if (file === "" || file.startsWith(own)) continue;
    const path = file.startsWith("file:") ? fileURLToPath(file.replace(/\?.*$/, "")) : file;
    const short = relative(process.cwd(), path);
    return `${short.startsWith("..") ? path : short}:${row}:${column}`;
  }
  return "";
}
