// Finds functions that are longer than a screen. Blank lines and comments do not count.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Lines of a screen. */
export const FUNCTION_LINES_MAX = 60;

/** Long functions by kind: lists of routes, the components of pages and tests are long for reasons of their own. */
export type FunctionKind = "code" | "routes" | "components" | "tests";

/** A long function. */
export interface LongFunction {
  path: string;
  /** From 1. */
  line: number;
  kind: FunctionKind;
  lines: number;
}

interface Report {
  diagnostics: {
    message: string;
    filename: string;
    labels: { span: { line: number } }[];
  }[];
}

/** Other findings are of files in another language. */
const LENGTH = /too many lines \((\d+)\)/;
const TEST = /(?:^tests\/|\/test\/|\.test\.ts$)/;
const ROUTES = /\bfunction (?:create|list)\w*Routes\b/;

/** Finds the long functions of files and folders. */
export function findLongFunctions(places: readonly string[]): LongFunction[] {
  return readReport(places)
    .diagnostics.filter(({ message }) => LENGTH.test(message))
    .map(({ message, filename: path, labels: [label] }) => {
      const { line } = label!.span;
      return {
        path,
        line,
        kind: kindOf(path, line),
        lines: Number(LENGTH.exec(message)![1]),
      };
    })
    .sort((one, other) =>
      one.path === other.path ? one.line - other.line : one.path < other.path ? -1 : 1,
    );
}

function readReport(places: readonly string[]): Report {
  const folder = mkdtempSync(join(tmpdir(), "platform-lint-"));
  const config = join(folder, "oxlint.json");
  const bound = { max: FUNCTION_LINES_MAX, skipBlankLines: true, skipComments: true };
  const rules = { "max-lines-per-function": ["error", bound] };
  writeFileSync(config, JSON.stringify({ categories: { correctness: "off" }, rules }));
  try {
    const run = spawnSync("oxlint", ["-c", config, "-f", "json", ...places], {
      encoding: "utf8",
      maxBuffer: 64 * 1024 * 1024,
    });
    if (run.error !== undefined) throw run.error;
    return JSON.parse(run.stdout) as Report;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function kindOf(path: string, line: number): FunctionKind {
  if (TEST.test(path)) return "tests";
  if (path.endsWith(".tsx")) return "components";
  return ROUTES.test(readFileSync(path, "utf8").split("\n")[line - 1] ?? "") ? "routes" : "code";
}

if (import.meta.main) {
  const places = process.argv.slice(2);
  if (places.length === 0) {
    console.error("usage: node tools/function-lengths.ts FILE-OR-FOLDER...");
    process.exitCode = 2;
  } else {
    for (const { path, line, kind, lines } of findLongFunctions(places)) {
      console.log(`${path}:${line}: ${lines} lines (${kind})`);
    }
  }
}
