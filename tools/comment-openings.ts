// Finds comments that open with What, Who, Where, Whoever or How instead of a noun or a verb (see CONTRIBUTING.md).
import { globSync, readFileSync } from "node:fs";

/** A comment whose opening breaks the rule. */
export interface CommentOpening {
  path: string;
  /** From 1. */
  line: number;
  text: string;
}

const OPENING = /(?:^|\s)(?:\/\/|\/\*\*?|\*)\s+(?:What|Who|Where|Whoever|How)\b/;
const SOURCES = "**/*.{ts,tsx,js}";

/** Finds the openings in all source files of a folder. */
export function findCommentOpenings(folder: string): CommentOpening[] {
  return globSync(`${folder}/${SOURCES}`, { exclude: ["**/node_modules/**"] })
    .sort()
    .flatMap((path) =>
      findOpenings(readFileSync(path, "utf8")).map((opening) => ({ path, ...opening })),
    );
}

/** Finds the openings in a source text. Only the first line of a comment counts. */
export function findOpenings(text: string): Omit<CommentOpening, "path">[] {
  const lines = text.split("\n").map((line) => line.trim());
  return lines.flatMap((line, index) => {
    const before = lines[index - 1] ?? "";
    const continues = line.startsWith("//")
      ? before.startsWith("//")
      : line.startsWith("* ") && before !== "/**" && before !== "*";
    return !continues && OPENING.test(line) ? [{ line: index + 1, text: line }] : [];
  });
}

if (import.meta.main) {
  const folders = process.argv.slice(2);
  if (folders.length === 0) {
    console.error("usage: node tools/comment-openings.ts FOLDER...");
    process.exitCode = 2;
  }
  for (const { path, line, text } of folders.flatMap(findCommentOpenings)) {
    console.log(`${path}:${line}: ${text}`);
  }
}
