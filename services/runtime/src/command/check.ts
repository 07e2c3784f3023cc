// `platform check`: finds errors of a project, or of one service file, without running it.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { checkFiles, listImported, type CheckResult } from "../editor/check-project.ts";
import { listFiles } from "../editor/project-files.ts";
import { formatProblem, type SourceProblem } from "../language/source-problem.ts";
import { describeMissing, MAIN_FILE } from "./run.ts";

/** Options of `platform check`. */
export interface CheckOptions {
  /** Default: all TypeScript files of the project in the working directory. */
  readonly file: string | undefined;
  /** Prints a JSON array of problems, for editors. */
  readonly json: boolean;
}

const CHECKED = /(?<!\.d)\.[mc]?ts$/;

/** Prints all problems; resolves to 1 if there are errors. */
export async function runCheck({ file, json }: CheckOptions): Promise<number> {
  const { problems, count, label } = await findProblems(file);
  const errors = problems.filter(({ severity }) => severity === "error").length;
  if (json) process.stdout.write(`${JSON.stringify(problems)}\n`);
  else {
    for (const problem of problems) {
      process.stdout.write(`${formatProblem(problem, readSource(problem))}\n\n`);
    }
    const found = errors === 0 ? "no errors" : errors === 1 ? "1 error" : `${errors} errors`;
    process.stdout.write(`${label ?? `${count} files`}: ${found}\n`);
  }
  return errors === 0 ? 0 : 1;
}

interface Found {
  readonly problems: readonly SourceProblem[];
  /** Number of files. */
  readonly count: number;
  /** Name of a single file. */
  readonly label: string | undefined;
}

async function findProblems(file: string | undefined): Promise<Found> {
  if (file === undefined) {
    const folder = process.cwd();
    const files = listFiles(folder, CHECKED);
    if (files.length === 0) throw new Error(describeMissing(MAIN_FILE));
    const result = await checkFiles({ folder, files, isAlone: false });
    const label = files.length === 1 ? relative(folder, files[0]!) : undefined;
    return { problems: addMissingTypes(result, files[0]!), count: files.length, label };
  }
  const path = resolve(file);
  if (!existsSync(path)) throw new Error(describeMissing(file));
  const files = listImported(path);
  const result = await checkFiles({ folder: findFolder(path), files, isAlone: true });
  return { problems: addMissingTypes(result, path), count: files.length, label: file };
}

function addMissingTypes({ problems, hasTypes }: CheckResult, file: string): SourceProblem[] {
  if (hasTypes) return [...problems];
  const path = relative(process.cwd(), file);
  const message = "types were not checked; install typescript";
  return [...problems, { path, line: 1, column: 1, severity: "warning", message }];
}

/** The project of a file: the nearest folder with a package.json or a tsconfig.json, within the working directory. */
function findFolder(file: string): string {
  const top = process.cwd();
  const isProject = (folder: string): boolean =>
    ["package.json", "tsconfig.json"].some((name) => existsSync(join(folder, name)));
  for (
    let folder = dirname(file);
    folder === top || folder.startsWith(top + sep);
    folder = dirname(folder)
  ) {
    if (isProject(folder)) return folder;
  }
  return dirname(file);
}

function readSource({ path }: SourceProblem): string {
  return readFileSync(resolve(path), "utf8");
}
