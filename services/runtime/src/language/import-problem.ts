// Problems with imports, at the place of their names in the author's file.
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { CompileError, findLineColumn } from "./source-problem.ts";

/** The error of an import that is not installed or does not exist; undefined if the file does not contain its name. */
export function createMissingImport(specifier: string, file: string): CompileError | undefined {
  return createImportProblem(specifier, file, describeMissing(specifier));
}

// Packages of the platform are not in registries: who followed the advice would install a stranger's.
function describeMissing(specifier: string): string {
  if (/^[./]/.test(specifier)) return `there is no file ${specifier}`;
  if (/^@platform(?:\/|$)/.test(specifier)) return `the platform has no package ${specifier}`;
  return `the package ${specifier} is not installed: npm install ${specifier}`;
}

/** An error at the name of an import; undefined if the file does not contain it. */
export function createImportProblem(
  specifier: string,
  file: string,
  message: string,
): CompileError | undefined {
  const source = readFileSync(file, "utf8");
  const found = new RegExp(`(["'])${RegExp.escape(specifier)}\\1`).exec(source);
  if (found === null) return undefined;
  const position = findLineColumn(source, found.index);
  const path = relative(process.cwd(), file);
  return new CompileError([{ path, ...position, severity: "error", message }], source);
}
