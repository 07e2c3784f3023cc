// Splits the output of a process into lines of bounded length.
import type { Readable } from "node:stream";

const LINE_CHARACTERS_MAX = 65_536;

/** Calls `onLine` for each line, without its terminator. Longer lines are split. */
export function readLines(stream: Readable, onLine: (line: string) => void): void {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) onLine(line.replace(/\r$/, ""));
    for (; rest.length > LINE_CHARACTERS_MAX; rest = rest.slice(LINE_CHARACTERS_MAX)) {
      onLine(rest.slice(0, LINE_CHARACTERS_MAX));
    }
  });
  stream.on("end", () => {
    if (rest !== "") onLine(rest);
    rest = "";
  });
}
