// `platform check`: finds errors of a service file without running it.
import { existsSync, readFileSync } from "node:fs";
import { relative, resolve } from "node:path";
import { checkStatements } from "../language/check-statements.ts";
import { checkTypes } from "../language/check-types.ts";
import { compileService } from "../language/compile.ts";
import { CompileError, formatProblem, type SourceProblem } from "../language/source-problem.ts";
import { describeMissing, MAIN_FILE } from "./run.ts";

/** Options of `platform check`. */
export interface CheckOptions {
  readonly file: string | undefined;
  /** Prints a JSON array of problems, for editors. */
  readonly json: boolean;
}

/** Prints all problems; resolves to 1 if there are errors. */
export function runCheck({ file = MAIN_FILE, json }: CheckOptions): number {
  const path = resolve(file);
  if (!existsSync(path)) throw new Error(describeMissing(file));
  const source = readFileSync(path, "utf8");
  const problems = findProblems(path, source);
  const errors = problems.filter(({ severity }) => severity === "error").length;
  if (json) process.stdout.write(`${JSON.stringify(problems)}\n`);
  else {
    for (const problem of problems) {
      const text = problem.path === relative(process.cwd(), path) ? source : readSource(problem);
      process.stdout.write(`${formatProblem(problem, text)}\n\n`);
    }
    const count = errors === 0 ? "no errors" : errors === 1 ? "1 error" : `${errors} errors`;
    process.stdout.write(`${file}: ${count}\n`);
  }
  return errors === 0 ? 0 : 1;
}

function findProblems(path: string, source: string): SourceProblem[] {
  const name = relative(process.cwd(), path);
  try {
    const compiled = compileService(source, name);
    const databaseUrl = process.env["DATABASE_URL"];
    const { problems, rowTypes } = checkStatements({
      path: name,
      source,
      ...compiled,
      databaseUrl,
    });
    const found = [...compiled.warnings, ...problems];
    const types = checkTypes(path, compileService(source, name, rowTypes));
    if (types !== undefined) return [...found, ...types];
    const message = "types were not checked; install typescript";
    return [...found, { path: name, line: 1, column: 1, severity: "warning", message }];
  } catch (error) {
    if (error instanceof CompileError) return [...error.problems];
    throw error;
  }
}

function readSource({ path }: SourceProblem): string {
  return readFileSync(resolve(path), "utf8");
}
