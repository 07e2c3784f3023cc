// Checks of declarations beyond syntax: duplicates, paths, timings, folders.
import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { checkTiming, Router } from "@platform/service/host";
import { findFileName, findFolder } from "./databases.ts";
import type { Declaration, RouteDeclaration } from "./declaration.ts";
import { LineIndex } from "./line-index.ts";
import type { SourceProblem } from "./source-problem.ts";

/** A program to verify. */
interface Program {
  readonly path: string;
  readonly source: string;
  readonly declarations: readonly Declaration[];
}

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/** Returns all problems, in the order of the file. */
export function verifyDeclarations(program: Program): SourceProblem[] {
  const { path, source, declarations } = program;
  const problems: SourceProblem[] = [];
  const lines = new LineIndex(source);
  const find = (offset: number): { line: number; column: number } => {
    const { line, character } = lines.toPosition(offset);
    return { line: line + 1, column: character + 1 };
  };
  const report = (offset: number, message: string, severity: SourceProblem["severity"]): void => {
    problems.push({ path, ...find(offset), severity, message });
  };
  const error = (offset: number, message: string): void => report(offset, message, "error");
  const place = (offset: number): string => {
    const { line, column } = find(offset);
    return `${path}:${line}:${column}`;
  };
  verifySingle(declarations, place, error);
  verifyNames(program, place, error);
  verifyRoutes(declarations, place, error);
  verifyMigrations(program, error);
  for (const declaration of declarations) {
    if (declaration.kind !== "every") continue;
    const reason = catchMessage(() => checkTiming(declaration.timing));
    if (reason !== undefined) error(declaration.timingRange.start, reason);
    if (!declarations.some(({ kind }) => kind === "database")) {
      report(declaration.start, "without a database, every replica runs this schedule", "warning");
    }
  }
  return problems.sort((a, b) => a.line - b.line || a.column - b.column);
}

type Report = (offset: number, message: string) => void;

function verifySingle(
  declarations: readonly Declaration[],
  place: (offset: number) => string,
  error: Report,
): void {
  for (const kind of ["server", "gateway", "migrations"] as const) {
    const [first, ...others] = declarations.filter((one) => one.kind === kind);
    for (const other of others) {
      error(other.start, `a service has one ${kind}: it is declared at ${place(first!.start)}`);
    }
  }
}

function verifyNames(
  { declarations, source }: Program,
  place: (offset: number) => string,
  error: Report,
): void {
  const known = new Map<string, number>();
  for (const declaration of declarations) {
    if (declaration.kind !== "database") continue;
    const { name, offset } = findFileName(declaration, source);
    const first = known.get(name);
    if (first !== undefined) {
      error(offset, `database ${name} is declared at ${place(first)} already`);
    }
    known.set(name, first ?? offset);
    if (!/^[a-z][a-z0-9_-]{0,62}$/.test(name)) {
      error(offset, `expected a lower-case name: ${name} is the name of a file`);
    }
  }
}

function verifyRoutes(
  declarations: readonly Declaration[],
  place: (offset: number) => string,
  error: Report,
): void {
  const router = new Router<RouteDeclaration & { declaredAt: string }>();
  for (const declaration of declarations) {
    if (declaration.kind !== "route") continue;
    const { method, methodRange, pathRange } = declaration;
    if (!METHODS.includes(method)) {
      const found = method === "" ? "none" : method;
      error(
        methodRange.start,
        `expected an HTTP method (${METHODS.join(", ")}) after export route, found ${found}`,
      );
      continue;
    }
    const declaredAt = place(declaration.start);
    const reason = catchMessage(() => router.add({ ...declaration, declaredAt }));
    if (reason !== undefined) error(pathRange.start, reason);
  }
}

function verifyMigrations({ path, source, declarations }: Program, error: Report): void {
  for (const declaration of declarations) {
    const found = findFolder(declaration, source);
    if (found === undefined) continue;
    const folder = resolve(dirname(path), found.folder);
    if (!existsSync(folder))
      error(found.offset, `the folder of migrations ${found.folder} does not exist; create it`);
    if (
      declaration.kind === "migrations" &&
      !declarations.some(({ kind }) => kind === "database")
    ) {
      error(declaration.start, "migrations need a database; declare one: database notes");
    }
  }
}

function catchMessage(work: () => void): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
