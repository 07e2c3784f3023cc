// Checks of files outside of an editor: the same documents, views and messages, asked for once.
import { readFileSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { SourceProblem } from "../language/source-problem.ts";
import { createTypeClientCapabilities } from "./capabilities.ts";
import type { Document } from "./document.ts";
import { Problems } from "./problems.ts";
import type { Diagnostic } from "./protocol.ts";
import { findCompiler, TypeServer } from "./type-server.ts";
import { Workspace } from "./workspace.ts";

/** Files that are asked about at the same time. */
const PARALLEL = 8;
const WARNING_MAX = 2;
const IMPORT = /\b(?:from|import)\s*\(?\s*(["'])(\.{1,2}\/[^"'\n]+)\1/g;
const IMPORTED_MAX = 2_000;

/** Options of a check. */
export interface CheckOptions {
  /** Absolute path of the project. */
  readonly folder: string;
  /** Absolute paths. */
  readonly files: readonly string[];
  /** True to read no other service files than those, for a file alone. */
  readonly isAlone: boolean;
}

/** Result of a check. */
export interface CheckResult {
  /** In the order of the files and their lines. */
  readonly problems: readonly SourceProblem[];
  /** False without TypeScript. */
  readonly hasTypes: boolean;
}

/** Checks files. Rejects if TypeScript ends before it has answered. */
export async function checkFiles({ folder, files, isAlone }: CheckOptions): Promise<CheckResult> {
  const workspace = new Workspace(folder, isAlone ? files : undefined);
  if (!isAlone) workspace.discover();
  for (const file of files) workspace.readFile(file);
  const compiler = findCompiler(folder);
  const types = compiler === undefined ? undefined : startTypes(compiler, workspace);
  const problems = new Problems(workspace, types);
  try {
    for (const document of workspace.list()) problems.checkStatements(document);
    const documents = files.flatMap((file) => workspace.find(pathToFileURL(file).href) ?? []);
    const found: SourceProblem[] = [];
    await types?.ready;
    for (let at = 0; at < documents.length; at += PARALLEL) {
      const batch = documents.slice(at, at + PARALLEL);
      found.push(...(await Promise.all(batch.map((one) => checkDocument(one, problems)))).flat());
    }
    return { problems: found, hasTypes: types !== undefined };
  } finally {
    problems.schemas.close();
    await types?.stop();
  }
}

function startTypes(compiler: string, workspace: Workspace): TypeServer {
  return new TypeServer({
    compiler,
    initialize: {
      processId: process.pid,
      rootUri: pathToFileURL(workspace.folder).href,
      workspaceFolders: null,
      capabilities: createTypeClientCapabilities({}),
    },
    onRequest: () => null,
    onNotification: () => {},
    onReady: (connection) => workspace.replay(connection),
    onFailure: () => {},
  });
}

async function checkDocument(document: Document, problems: Problems): Promise<SourceProblem[]> {
  const path = relative(process.cwd(), document.path!);
  const diagnostics = await problems.list(document);
  return diagnostics
    .filter(({ severity = 1 }) => severity <= WARNING_MAX)
    .map((diagnostic) => toProblem(path, diagnostic))
    .sort((a, b) => a.line - b.line || a.column - b.column);
}

function toProblem(path: string, { range, severity, code, message }: Diagnostic): SourceProblem {
  const { line, character } = range.start;
  const [text = ""] = message.split("\n");
  return {
    path,
    line: line + 1,
    column: character + 1,
    severity: severity === WARNING_MAX ? "warning" : "error",
    message: code === undefined ? message : `${text} (TS${code})`,
  };
}

/** The file and those of its folder that it imports, by relative paths. */
export function listImported(file: string): string[] {
  const folder = `${dirname(file)}/`;
  const found = new Set([file]);
  for (const path of found) {
    for (const [, , specifier = ""] of readText(path).matchAll(IMPORT)) {
      const imported = resolve(dirname(path), specifier);
      const isOwn = imported.startsWith(folder) && !imported.includes("/node_modules/");
      const isRead = /\.[mc]?ts$/.test(imported) && readText(imported) !== "";
      if (isOwn && isRead && found.size < IMPORTED_MAX) found.add(imported);
    }
  }
  return [...found];
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // TypeScript reports the import.
    return "";
  }
}
