// Errors in an author's file: position, message, and the line with a mark.

/** A position in a file; lines and columns start at 1. */
export interface SourcePosition {
  readonly line: number;
  readonly column: number;
}

/** An error or a warning at a position. */
export interface SourceProblem extends SourcePosition {
  readonly path: string;
  readonly severity: "error" | "warning";
  /** The fact and the remedy, in one line. */
  readonly message: string;
}

/** Thrown for a file that cannot be compiled; the message lists all problems with their lines. */
export class CompileError extends Error {
  readonly problems: readonly SourceProblem[];

  constructor(problems: readonly SourceProblem[], source: string) {
    super(problems.map((problem) => formatProblem(problem, source)).join("\n\n"));
    this.name = "CompileError";
    this.problems = problems;
    // The position is in the message; the compiler's own stack helps no author.
    this.stack = this.message;
  }
}

/** Formats `path:line:column: message`, followed by the line and a mark below the column. */
export function formatProblem(problem: SourceProblem, source: string): string {
  const { path, line, column, severity, message } = problem;
  const text = source.split("\n")[line - 1] ?? "";
  const number = String(line);
  // Tabs stay, so that the mark is below its column.
  const indent = text.slice(0, column - 1).replaceAll(/[^\t]/g, " ");
  const margin = " ".repeat(number.length);
  return [
    `${path}:${line}:${column}: ${severity === "warning" ? "warning: " : ""}${message}`,
    `  ${number} | ${text.trimEnd()}`,
    `  ${margin} | ${indent}^`,
  ].join("\n");
}

/** The position of an offset. */
export function findLineColumn(source: string, offset: number): SourcePosition {
  const before = source.slice(0, offset);
  const lineStart = before.lastIndexOf("\n") + 1;
  return { line: before.split("\n").length, column: offset - lineStart + 1 };
}
