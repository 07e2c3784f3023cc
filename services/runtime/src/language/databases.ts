// Databases of a file: declared by the word, or by a call of `database()` of the package.
import type { Declaration, StoreDeclaration } from "./declaration.ts";
import type { Candidate, SyntaxNode } from "./sql-template.ts";

/** A database under its name in the file. */
export interface DatabaseBinding {
  readonly name: string;
  /** Offset of the declaration. */
  readonly start: number;
  /** Folder of migrations and its offset, if it is written as a string. */
  readonly migrations: FolderText | undefined;
}

/** A folder as the author wrote it. */
export interface FolderText {
  readonly folder: string;
  readonly offset: number;
}

/** A declarator of variables, or an import. */
export interface BindingNode extends SyntaxNode {
  readonly id?: SyntaxNode | null;
  readonly init?: (Candidate & SyntaxNode) | null;
  readonly source?: { readonly value: unknown };
  readonly specifiers?: readonly { readonly local: SyntaxNode; readonly imported?: SyntaxNode }[];
}

const PACKAGE = "@platform/service";
const FILE_NAME = /[{,]\s*name\s*:\s*(["'])([^"'\\\n]*)\1/d;
const FOLDER = /\bmigrations\s*:\s*(["'])(\.[^"'\\\n]*)\1/d;

/** Finds the databases, in the order of the file. */
export function findDatabases(
  source: string,
  declarations: readonly Declaration[],
  nodes: readonly BindingNode[],
): DatabaseBinding[] {
  const shared = declarations.find(({ kind }) => kind === "migrations");
  const words = declarations.filter((one) => one.kind === "database") as StoreDeclaration[];
  const found = words.map((declaration, index): DatabaseBinding => {
    const { name, start } = declaration;
    const own = index === 0 && shared !== undefined ? shared : declaration;
    return { name, start, migrations: findFolder(own, source) };
  });
  const locals = new Set(nodes.flatMap(findLocalNames));
  const calls = nodes.flatMap((node) => readCall(node, locals, source) ?? []);
  return [...found, ...calls].sort((a, b) => a.start - b.start);
}

/** The folder of migrations of a declaration and its offset, if it is written as a string. */
export function findFolder(declaration: Declaration, source: string): FolderText | undefined {
  if (declaration.kind === "migrations") {
    return { folder: declaration.folder, offset: declaration.folderRange.start };
  }
  if (declaration.kind !== "database" || declaration.options === undefined) return undefined;
  return findWrittenFolder(source, declaration.options);
}

/** The name of a database's file and its offset: the option `name`, or the declared name. */
export function findFileName(
  { name, nameRange, options }: StoreDeclaration,
  source: string,
): { name: string; offset: number } {
  const written = options === undefined ? "" : source.slice(options.start, options.end);
  const found = FILE_NAME.exec(written);
  if (found === null) return { name, offset: nameRange.start };
  return { name: found[2]!, offset: options!.start + found.indices![2]![0] };
}

function findWrittenFolder(
  source: string,
  { start, end }: { start: number; end: number },
): FolderText | undefined {
  const found = FOLDER.exec(source.slice(start, end));
  return found === null ? undefined : { folder: found[2]!, offset: start + found.indices![1]![0] };
}

/** Local names of the package's `database`. */
function findLocalNames({ type, source, specifiers = [] }: BindingNode): string[] {
  if (type !== "ImportDeclaration" || source?.value !== PACKAGE) return [];
  return specifiers.flatMap(({ local, imported }) =>
    imported?.name === "database" && local.name !== undefined ? [local.name] : [],
  );
}

/** `const notes = database("notes", { migrations: "./migrations" }, import.meta.url)` */
function readCall(
  { type, start, id, init }: BindingNode,
  locals: ReadonlySet<string>,
  source: string,
): DatabaseBinding | undefined {
  const { callee, arguments: values = [] } = init ?? {};
  if (type !== "VariableDeclarator" || id?.name === undefined) return undefined;
  if (callee?.name === undefined || !locals.has(callee.name)) return undefined;
  const options = values[1];
  const migrations = options === undefined ? undefined : findWrittenFolder(source, options);
  return { name: id.name, start, migrations };
}
