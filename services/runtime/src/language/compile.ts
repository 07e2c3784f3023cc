// Compiles a service file to TypeScript: declarations become calls of @platform/service, lines stay lines.
import { MagicString } from "magic-string";
import type { DatabaseBinding } from "./databases.ts";
import type {
  Declaration,
  EveryDeclaration,
  Insertion,
  RouteDeclaration,
  StoreDeclaration,
} from "./declaration.ts";
import { explainSyntax, parseService, SyntaxProblem, type ParsedService } from "./parse.ts";
import { CompileError, findLineColumn, type SourceProblem } from "./source-problem.ts";
import type { SqlTemplate } from "./sql-template.ts";
import { verifyDeclarations } from "./verify.ts";

/** A compiled file. */
export interface Compiled {
  /** TypeScript; the same text if the file has no declarations. */
  readonly code: string;
  /** Source map as JSON, or null if the file has no declarations. */
  readonly map: string | null;
  readonly declarations: readonly Declaration[];
  readonly databases: readonly DatabaseBinding[];
  readonly statements: readonly SqlTemplate[];
  readonly warnings: readonly SourceProblem[];
}

/** Local names of the package's functions: a service may use the plain ones for itself. */
const LOCAL = {
  server: "$server",
  gateway: "$gateway",
  database: "$database",
  cache: "$cache",
  route: "$route",
  every: "$every",
};

/**
 * Compiles a file. Throws a CompileError that lists all problems with `path:line:column`. `insertions` are types, which
 * only checks need.
 */
export function compileService(
  source: string,
  path: string,
  insertions: readonly Insertion[] = [],
): Compiled {
  const parsed: ParsedService = reportSyntax(source, path, parseService);
  const { declarations } = parsed;
  if (declarations.length === 0) return { ...parsed, code: source, map: null, warnings: [] };
  const problems = verifyDeclarations({ path, source, declarations });
  const errors = problems.filter(({ severity }) => severity === "error");
  if (errors.length > 0) throw new CompileError(errors, source);
  const text = new MagicString(source);
  const migrations = declarations.find((one) => one.kind === "migrations");
  const firstDatabase = declarations.find(({ kind }) => kind === "database");
  for (const declaration of declarations) {
    const folder = declaration === firstDatabase ? migrations?.folder : undefined;
    rewrite(text, declaration, folder);
  }
  for (const { at, text: inserted } of insertions) text.appendLeft(at, inserted);
  text.appendLeft(declarations[0]!.start, formatImport(declarations));
  const map = text.generateMap({ source: path, includeContent: true, hires: "boundary" });
  return { code: text.toString(), map: map.toString(), ...parsed, warnings: problems };
}

/** Parses a file; a syntax error becomes a CompileError with its position. */
export function reportSyntax<Parsed>(
  source: string,
  path: string,
  parse: (source: string) => Parsed,
): Parsed {
  try {
    return parse(source);
  } catch (error) {
    if (!(error instanceof SyntaxProblem)) throw error;
    const { message, offset } = explainSyntax(error, source);
    const position = findLineColumn(source, offset);
    throw new CompileError([{ path, ...position, severity: "error", message }], source);
  }
}

function formatImport(declarations: readonly Declaration[]): string {
  const kinds = new Set(declarations.map(({ kind }) => kind));
  const names = Object.entries(LOCAL).filter(([kind]) => kinds.has(kind as Declaration["kind"]));
  const list = names.map(([kind, local]) => `${kind} as ${local}`);
  return `import { ${list.join(", ")} } from "@platform/service"; `;
}

function rewrite(text: MagicString, declaration: Declaration, folder: string | undefined): void {
  const { start, end } = declaration;
  switch (declaration.kind) {
    case "server":
    case "gateway":
      text.update(start, declaration.options.start, `${LOCAL[declaration.kind]}(`);
      text.appendLeft(end, ");");
      break;
    case "database":
    case "cache":
      rewriteStore(text, declaration, folder);
      break;
    case "migrations":
      // Part of the database's declaration.
      text.update(start, end, ";");
      break;
    case "every":
      rewriteEvery(text, declaration);
      break;
    case "route":
      rewriteRoute(text, declaration);
      break;
    default:
      declaration satisfies never;
  }
}

function rewriteStore(
  text: MagicString,
  { kind, start, end, isExported, name, nameRange, options }: StoreDeclaration,
  folder: string | undefined,
): void {
  const head = `${isExported ? "export " : ""}const `;
  text.update(start, nameRange.start, head);
  const call = kind === "cache" ? " = $cache(" : ` = $database(${JSON.stringify(name)}, `;
  const from = kind === "cache" ? ");" : ", import.meta.url);";
  const added = folder === undefined ? "" : `migrations: ${JSON.stringify(folder)}`;
  if (options === undefined) {
    text.appendLeft(end, `${call}{ ${added} }${from}`);
    return;
  }
  if (options.start > nameRange.end) text.update(nameRange.end, options.start, call);
  else text.appendLeft(nameRange.end, call);
  if (added !== "") text.appendLeft(options.start + 1, ` ${added},`);
  text.appendLeft(end, from);
}

function rewriteEvery(
  text: MagicString,
  { start, end, timing, timingRange, parameters, body }: EveryDeclaration,
): void {
  text.update(start, timingRange.start, "$every(");
  text.update(timingRange.start, timingRange.end, `${JSON.stringify(timing)}, async`);
  if (parameters === undefined) text.appendLeft(timingRange.end, " ()");
  text.appendRight(body.start, "=> ");
  text.appendLeft(end, ");");
}

function rewriteRoute(text: MagicString, declaration: RouteDeclaration): void {
  const { start, end, method, methodRange, path, pathRange, parameters, clauses, body } =
    declaration;
  text.update(start, methodRange.start, "$route(");
  text.update(methodRange.start, methodRange.end, `${JSON.stringify(method)},`);
  text.update(pathRange.start, pathRange.end, `${JSON.stringify(path)},`);
  // The options come before the function: the function's head moves behind them.
  for (const [index, { name, nameStart, value }] of clauses.entries()) {
    text.update(nameStart, value.start, `${index === 0 ? "{ " : ""}${name}: `);
    text.appendLeft(value.end, index === clauses.length - 1 ? " }," : ",");
  }
  if (parameters === undefined) text.appendRight(body.start, "async () => ");
  else {
    text.appendRight(parameters.start, " async ");
    text.appendLeft(parameters.end, " ");
    if (clauses.length > 0) text.move(parameters.start, parameters.end, body.start);
    text.appendRight(body.start, "=> ");
  }
  text.appendLeft(end, ");");
}
