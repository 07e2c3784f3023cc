// Converts a service file to plain TypeScript: declarations become calls, everything else stays as the author wrote it.
import { MagicString } from "magic-string";
import { reportSyntax } from "./compile.ts";
import type { BindingNode } from "./databases.ts";
import type {
  Declaration,
  EveryDeclaration,
  Range,
  RouteDeclaration,
  StoreDeclaration,
} from "./declaration.ts";
import { parseFile, parseService, SyntaxProblem } from "./parse.ts";
import { PlainImport } from "./plain-import.ts";
import { CompileError, findLineColumn } from "./source-problem.ts";

/** Functions of the package, by the declarations that call them. */
const FUNCTIONS = ["cache", "database", "every", "gateway", "route", "server"] as const;

/** Name of a function of the package. */
type FunctionName = (typeof FUNCTIONS)[number];

/** Local names of the functions in the converted file. */
type LocalNames = Readonly<Record<FunctionName, string>>;

/** A statement without a declaration before it would continue the one before. */
const CONTINUES = /^\s*(?:[([`+-]|\/(?![/*]))/;

/**
 * Converts a file. Databases keep their names. Throws a CompileError for a syntax error, without declarations, and if the
 * file uses the names of the package's functions in a way that leaves no readable name for them.
 */
export function convertToPlain(source: string, path: string): string {
  const { declarations, body } = reportSyntax(source, path, parseFile);
  const fail = (offset: number, message: string): never => {
    const position = findLineColumn(source, offset);
    throw new CompileError([{ path, ...position, severity: "error", message }], source);
  };
  const [first] = declarations;
  if (first === undefined) return fail(0, "the file has no declarations: it is plain already");
  const imported = new PlainImport(source, body);
  const kinds = new Set<string>(declarations.map(({ kind }) => kind));
  const used = FUNCTIONS.filter((name) => kinds.has(name));
  const names = chooseNames(used, imported, listNames(declarations, body), (name) => {
    const at = declarations.find(({ kind }) => kind === name)!.start;
    fail(at, `${name} and ${nameAlias(name)} are names of this file; rename one of them first`);
  });
  const text = new MagicString(source);
  rewriteAll(text, source, declarations, names);
  const code = imported.add(text, names, used, first.start);
  return check(code, path, fail);
}

/** Names of the top level. */
function listNames(
  declarations: readonly Declaration[],
  body: readonly BindingNode[],
): ReadonlySet<string> {
  const stores = declarations.flatMap((one) => ("name" in one ? [one.name] : []));
  return new Set([...stores, ...body.flatMap((node) => listBound(node as BindingParts))]);
}

/** Nodes of statements, and of patterns in them, as far as they bind names. */
interface BindingParts extends BindingNode {
  readonly declaration?: BindingParts | null;
  readonly declarations?: readonly { readonly id: BindingParts }[];
  readonly elements?: readonly (BindingParts | null)[];
  readonly properties?: readonly BindingParts[];
  readonly value?: BindingParts;
  readonly left?: BindingParts;
  readonly argument?: BindingParts;
}

function listBound(node: BindingParts | null | undefined): string[] {
  if (node === null || node === undefined) return [];
  if (node.type === "Identifier") return [node.name!];
  if (node.type === "ImportDeclaration") {
    return (node.specifiers ?? []).map(({ local }) => local.name!);
  }
  const parts = [
    ...(node.declarations ?? []).map(({ id }) => id),
    ...(node.elements ?? []),
    ...(node.properties ?? []),
    node.declaration,
    node.value,
    node.left,
    node.argument,
  ];
  // Functions, classes, and types.
  const named = node.type.endsWith("Declaration") ? [node.id as BindingParts | null] : [];
  return [...named, ...parts].flatMap(listBound);
}

function nameAlias(name: FunctionName): string {
  return `declare${name[0]!.toUpperCase()}${name.slice(1)}`;
}

/** The author's import of a function, its own name, or one with `declare` if the file uses that. */
function chooseNames(
  used: readonly FunctionName[],
  imported: PlainImport,
  taken: ReadonlySet<string>,
  refuse: (name: FunctionName) => void,
): LocalNames {
  const names: Record<FunctionName, string> = {
    cache: "cache",
    database: "database",
    every: "every",
    gateway: "gateway",
    route: "route",
    server: "server",
  };
  for (const name of used) {
    const known = imported.findLocal(name);
    const choice = [name, nameAlias(name)].find((one) => !taken.has(one));
    if (known === undefined && choice === undefined) refuse(name);
    names[name] = known ?? choice ?? name;
  }
  return names;
}

function rewriteAll(
  text: MagicString,
  source: string,
  declarations: readonly Declaration[],
  names: LocalNames,
): void {
  const migrations = declarations.find((one) => one.kind === "migrations");
  const firstDatabase = declarations.find(({ kind }) => kind === "database");
  for (const declaration of declarations) {
    const { kind, start, end } = declaration;
    if (kind === "migrations") {
      removeStatement(text, source, declaration);
      continue;
    }
    if (declaration.kind === "server" || declaration.kind === "gateway") {
      text.update(start, declaration.options.start, `${names[declaration.kind]}(`);
    } else if (kind === "route") rewriteRoute(text, source, declaration, names);
    else if (kind === "every") rewriteEvery(text, source, declaration, names);
    else if (declaration.kind === "database" || declaration.kind === "cache") {
      const folder = declaration === firstDatabase ? migrations?.folderRange : undefined;
      rewriteStore(text, source, declaration, names, folder);
    }
    const isOpen = kind !== "database" && kind !== "cache";
    const hasSemicolon = source[end] === ";";
    text.appendLeft(end, `${isOpen ? ")" : ""}${hasSemicolon ? "" : ";"}`);
  }
}

/** The text between two parts of a head if it has a comment, otherwise `usual`. */
function keepComment(source: string, from: number, to: number, usual = ""): string {
  const gap = source.slice(from, to);
  return gap.trim() === "" ? usual : gap.replace(/^[ \t]*/, "").replace(/(?<=\S)[ \t]*$/, " ");
}

function rewriteStore(
  text: MagicString,
  source: string,
  { kind, start, end, isExported, name, nameRange, options }: StoreDeclaration,
  names: LocalNames,
  folder: Range | undefined,
): void {
  const added = folder === undefined ? "" : `migrations: ${source.slice(folder.start, folder.end)}`;
  const isDatabase = kind === "database";
  const head = `${isExported ? "export " : ""}const ${name} = ${names[kind]}(`;
  const label = isDatabase ? JSON.stringify(name) : "";
  const hasOptions = options !== undefined || added !== "";
  const separator = isDatabase && hasOptions ? ", " : "";
  const tail = isDatabase && hasOptions ? ", import.meta.url)" : ")";
  if (options === undefined) {
    text.update(start, end, `${head}${label}${separator}${added && `{ ${added} }`}${tail}`);
    return;
  }
  const comment = keepComment(source, nameRange.end, options.start);
  text.update(start, options.start, `${head}${label}${separator}${comment}`);
  const isEmpty = source.slice(options.start + 1, options.end - 1).trim() === "";
  if (added !== "") text.appendLeft(options.start + 1, isEmpty ? ` ${added} ` : ` ${added},`);
  text.appendLeft(end, tail);
}

function rewriteEvery(
  text: MagicString,
  source: string,
  { start, timing, timingRange, parameters, body }: EveryDeclaration,
  names: LocalNames,
): void {
  const written = source.slice(timingRange.start, timingRange.end);
  const quoted = /^["']/.test(written) ? written : JSON.stringify(timing);
  const before = keepComment(source, timingRange.end, (parameters ?? body).start);
  const after = keepComment(source, (parameters ?? body).end, body.start);
  const list = parameters === undefined ? "()" : source.slice(parameters.start, parameters.end);
  const inner = parameters === undefined ? "" : after;
  text.update(start, body.start, `${names.every}(${quoted}, ${before}async ${list} => ${inner}`);
}

function rewriteRoute(
  text: MagicString,
  source: string,
  { start, method, path, pathRange, parameters, clauses, body }: RouteDeclaration,
  names: LocalNames,
): void {
  const [firstClause] = clauses;
  const startOfNext = parameters?.start ?? firstClause?.nameStart ?? body.start;
  let head = `${names.route}(${JSON.stringify(method)}, ${JSON.stringify(path)}, `;
  head += keepComment(source, pathRange.end, startOfNext);
  let at = parameters?.end ?? startOfNext;
  for (const [index, { name, nameStart, value }] of clauses.entries()) {
    head += index === 0 ? "{ " : ", ";
    head += keepComment(source, at, nameStart);
    head += `${name}: ${keepComment(source, nameStart + name.length, value.start)}`;
    head += source.slice(value.start, value.end);
    at = value.end;
  }
  if (clauses.length > 0) head += " }, ";
  const list = parameters === undefined ? "()" : source.slice(parameters.start, parameters.end);
  head += `async ${list} => ${keepComment(source, at, body.start)}`;
  text.update(start, body.start, head);
}

/** Removes the line of a declaration that has become an option. */
function removeStatement(text: MagicString, source: string, { start, end }: Range): void {
  const lineStart = source.lastIndexOf("\n", start - 1) + 1;
  const rest = /^[ \t]*;?[ \t]*(?:\r?\n|$)/.exec(source.slice(end))?.[0];
  const semicolon = /^[ \t]*;/.exec(source.slice(end))?.[0] ?? "";
  const next = source.slice(end + (rest ?? semicolon).length);
  if (CONTINUES.test(next)) {
    text.update(start, end + semicolon.length, ";");
    return;
  }
  const isLine = rest !== undefined && source.slice(lineStart, start).trim() === "";
  if (isLine) text.remove(lineStart, end + rest.length);
  else text.remove(start, end + semicolon.length);
}

/** The converted text, if it can be parsed and is plain. */
function check(
  code: string,
  path: string,
  fail: (offset: number, message: string) => never,
): string {
  try {
    if (parseService(code).declarations.length === 0) return code;
  } catch (error) {
    if (!(error instanceof SyntaxProblem)) throw error;
    return fail(0, `${path} cannot be converted: ${error.message}`);
  }
  return fail(0, "a statement of the converted file would be a declaration; write it differently");
}
