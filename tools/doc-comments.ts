// Finds documentation comments that say no more than the name below them: they have as few words, and no fact that a name
// cannot have (see CONTRIBUTING.md).
import { globSync, readFileSync } from "node:fs";

/** A comment with no more words than the name that it stands above, and no fact. */
export interface ShortComment {
  path: string;
  /** From 1. */
  line: number;
  name: string;
  text: string;
}

const COMMENT = /^\s*\/\*\* (.*) \*\/$/;
const DECLARATION =
  /^\s*(?:(?:export|default|declare|abstract|public|private|protected|static|readonly|async|override|get|set|const|let|function\*?|class|interface|type|enum) )*#?([A-Za-z_]\w*)/;
const WORD = /[\w'-]+/g;
const NAME_PART = /[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+/g;
/** A value, a format, an abbreviation or a link, which no name has. */
const FACT = /[`\d]|\{@link|\b[A-Z]{2,}/;
/** Generated from the OpenAPI documents. */
const GENERATED = "apps/*/src/contract/**";

/** Finds the short comments in all source files of a folder. */
export function findShortComments(folder: string): ShortComment[] {
  return globSync(`${folder}/**/*.{ts,tsx}`, { exclude: ["**/node_modules/**", GENERATED] })
    .sort()
    .flatMap((path) =>
      listShortComments(readFileSync(path, "utf8")).map((comment) => ({ path, ...comment })),
    );
}

/** Finds the short comments in a source text. */
export function listShortComments(text: string): Omit<ShortComment, "path">[] {
  const lines = text.split("\n");
  return lines.flatMap((line, index) => {
    const comment = COMMENT.exec(line)?.[1];
    const name = DECLARATION.exec(lines[index + 1] ?? "")?.[1];
    if (comment === undefined || name === undefined) return [];
    if (FACT.test(comment)) return [];
    const isShort = countWords(comment, WORD) <= countWords(name, NAME_PART);
    return isShort ? [{ line: index + 1, name, text: comment }] : [];
  });
}

function countWords(text: string, word: RegExp): number {
  return text.match(word)?.length ?? 0;
}

if (import.meta.main) {
  const folders = process.argv.slice(2);
  if (folders.length === 0) {
    console.error("usage: node tools/doc-comments.ts FOLDER...");
    process.exitCode = 2;
  }
  for (const { path, line, name, text } of folders.flatMap(findShortComments)) {
    console.log(`${path}:${line}: ${name}: ${text}`);
  }
}
