// Of modules of declarations, the statements that some of their names reach. Imports of the platform's packages become
// imports of the files that declare what they name.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { MagicString } from "magic-string";
import { findName, readString, visit, type AstNode } from "../build/syntax.ts";

/** Options of {@link ReachedTypes}. */
export interface ReachedTypesOptions {
  /** Absolute path of the folder of all modules. */
  readonly folder: string;
  /** Absolute paths of modules by the names by which they are imported. */
  readonly modules: ReadonlyMap<string, string>;
  /** Packages whose declarations are installed with these. */
  readonly installed: readonly string[];
  /** Parses declarations to ESTree. */
  readonly parse: (text: string) => object;
}

/** A name where it is declared; `*` is the whole module. */
interface Origin {
  readonly file: string;
  readonly name: string;
}

/** An import, or an export of another module's name. */
interface Imported {
  readonly specifier: string;
  /** Its name in the other module; `*` for a namespace. */
  readonly name: string;
  readonly isType: boolean;
}

interface Statement {
  readonly node: AstNode;
  /** Position of the comment before it. */
  readonly start: number;
  /** Names in it, its own and others. */
  readonly names: ReadonlySet<string>;
}

interface Module {
  readonly source: string;
  /** Statements by the names that they declare; overloads have one. */
  readonly declared: ReadonlyMap<string, readonly Statement[]>;
  readonly imports: ReadonlyMap<string, Imported>;
  /** Exports of other modules' names. */
  readonly passed: ReadonlyMap<string, Imported>;
  /** Modules all of whose exports are passed on. */
  readonly all: readonly string[];
  /** Local names by names of exports. */
  readonly exported: ReadonlyMap<string, string>;
}

/** Settings that name no types do not load those of Node. */
const NODE_TYPES = '/// <reference types="node" />';

/** The declarations that names reach. */
export class ReachedTypes {
  readonly #options: ReachedTypesOptions;
  readonly #modules = new Map<string, Module>();
  /** Local names that are needed, by file. */
  readonly #needed = new Map<string, Set<string>>();

  constructor(options: ReachedTypesOptions) {
    this.#options = options;
  }

  /** Adds all exports of a module. Throws for types of packages. */
  addFace(file: string): void {
    const { exported, passed } = this.#read(file);
    for (const name of exported.values()) this.#need(file, name);
    for (const name of passed.keys()) {
      this.#mark(file, name);
      this.#needOrigin(this.#find(file, name));
    }
  }

  /** The texts of all modules that are reached, by their paths relative to the folder. */
  write(): ReadonlyMap<string, string> {
    return new Map(
      Array.from(this.#needed, ([file, names]) => [
        relative(this.#options.folder, file),
        this.#format(file, names),
      ]),
    );
  }

  #mark(file: string, name: string): boolean {
    const names = this.#needed.get(file) ?? new Set();
    this.#needed.set(file, names);
    const isNew = !names.has(name);
    names.add(name);
    return isNew;
  }

  #needOrigin({ file, name }: Origin): void {
    if (name === "*") this.addFace(file);
    else this.#need(file, this.#read(file).exported.get(name) ?? name);
  }

  /** Adds a local name of a module, and all that its declaration names. */
  #need(file: string, name: string): void {
    if (!this.#mark(file, name)) return;
    const { declared, imports } = this.#read(file);
    const imported = imports.get(name);
    if (imported !== undefined) {
      const origin = this.#locate(file, imported);
      if (origin !== undefined) this.#needOrigin(origin);
      return;
    }
    for (const { node, names } of declared.get(name) ?? []) {
      for (const used of names) {
        if (declared.has(used) || imports.has(used)) this.#need(file, used);
      }
      visit(node, (one) => {
        if (one.type !== "TSImportType") return;
        const origin = this.#locate(file, readImportType(one));
        if (origin !== undefined) this.#needOrigin(origin);
      });
    }
  }

  /** Follows a name to its declaration, through modules that pass it on. */
  #find(file: string, name: string): Origin {
    const { passed, imports, exported, all } = this.#read(file);
    const through = passed.get(name) ?? imports.get(exported.get(name) ?? name);
    if (through !== undefined) return this.#locate(file, through) ?? { file, name };
    if (exported.has(name)) return { file, name };
    for (const specifier of all) {
      const found = this.#locate(file, { specifier, name, isType: true });
      if (found !== undefined && this.#read(found.file).exported.has(found.name)) return found;
    }
    return { file, name };
  }

  /** Follows an import to its declaration; undefined for modules of Node and installed packages. */
  #locate(file: string, { specifier, name }: Imported): Origin | undefined {
    const { installed } = this.#options;
    if (specifier.startsWith("node:") || installed.includes(specifier)) return undefined;
    const isFile = specifier.startsWith(".");
    const path = isFile ? join(dirname(file), specifier) : this.#options.modules.get(specifier);
    const target = path?.replace(/(?:\.d)?\.ts$/, ".d.ts");
    if (target === undefined || !existsSync(target)) {
      const place = relative(this.#options.folder, file);
      throw new Error(`${place}: its types are those of ${specifier}, which projects do not have`);
    }
    return name === "*" ? { file: target, name } : this.#find(target, name);
  }

  #format(file: string, needed: ReadonlySet<string>): string {
    const { source, declared, imports, passed, exported } = this.#read(file);
    const lines: string[] = [];
    const add = (kind: "import" | "export", local: string, one: Imported): void => {
      const origin = this.#locate(file, one);
      const from = origin === undefined ? one.specifier : nameFile(file, origin.file);
      const name = origin?.name ?? one.name;
      const names = name === "*" ? `* as ${local}` : `{ ${formatPair(name, local)} }`;
      lines.push(`${kind} ${one.isType ? "type " : ""}${names} from ${JSON.stringify(from)};`);
    };
    for (const [local, one] of imports) if (needed.has(local)) add("import", local, one);
    for (const [name, one] of passed) if (needed.has(name)) add("export", name, one);
    const statements = new Set([...needed].flatMap((name) => declared.get(name) ?? []));
    for (const statement of Array.from(statements).toSorted((a, b) => a.start - b.start)) {
      lines.push(this.#rewrite(file, source, statement));
    }
    for (const [name, local] of exported) {
      const isListed = declared.get(local)?.every(({ node }) => !node.type.startsWith("Export"));
      if (needed.has(local) && isListed === true)
        lines.push(`export { ${formatPair(local, name)} };`);
    }
    return `${NODE_TYPES}\n${lines.join("\n")}\nexport {};\n`;
  }

  /** A statement whose types of other modules name their files. */
  #rewrite(file: string, source: string, { node, start }: Statement): string {
    const text = new MagicString(source);
    visit(node, (one) => {
      if (one.type !== "TSImportType") return;
      const origin = this.#locate(file, readImportType(one));
      const specifier = one["source"] as AstNode;
      if (origin !== undefined) {
        text.update(specifier.start, specifier.end, JSON.stringify(nameFile(file, origin.file)));
      }
    });
    return text.slice(start, node.end).trim();
  }

  #read(file: string): Module {
    const known = this.#modules.get(file);
    if (known !== undefined) return known;
    const source = readFileSync(file, "utf8");
    const module = readModule(source, this.#options.parse(source));
    this.#modules.set(file, module);
    return module;
  }
}

function readModule(source: string, tree: object): Module {
  const declared = new Map<string, Statement[]>();
  const imports = new Map<string, Imported>();
  const passed = new Map<string, Imported>();
  const all: string[] = [];
  const exported = new Map<string, string>();
  let start = 0;
  for (const node of (tree as { body: AstNode[] }).body) {
    const specifier = readSpecifier(node);
    const specifiers = (node["specifiers"] ?? []) as AstNode[];
    const isType = (one: AstNode): boolean =>
      [node, one].some((at) => [at["importKind"], at["exportKind"]].includes("type"));
    const declaration = (node["declaration"] ?? node) as AstNode;
    if (node.type === "ImportDeclaration") {
      for (const one of specifiers) {
        const name = one.type === "ImportSpecifier" ? String(findName(one["imported"])) : "*";
        imports.set(String(findName(one["local"])), {
          specifier: specifier!,
          name,
          isType: isType(one),
        });
      }
    } else if (node.type === "ExportAllDeclaration") all.push(specifier!);
    else if (specifier !== undefined) {
      for (const one of specifiers) {
        const name = String(findName(one["local"]));
        passed.set(String(findName(one["exported"])), { specifier, name, isType: isType(one) });
      }
    } else if (specifiers.length > 0) {
      for (const one of specifiers) {
        exported.set(String(findName(one["exported"])), String(findName(one["local"])));
      }
    } else {
      const statement = { node, start, names: collectNames(node) };
      for (const name of readDeclared(declaration)) {
        declared.set(name, [...(declared.get(name) ?? []), statement]);
        if (node !== declaration) exported.set(name, name);
      }
    }
    start = node.end;
  }
  return { source, declared, imports, passed, all, exported };
}

function readDeclared(node: AstNode): string[] {
  const { id, declarations } = node as { id?: unknown; declarations?: readonly AstNode[] };
  const ids = declarations === undefined ? [id] : declarations.map((one) => one["id"]);
  return ids.map(findName).filter((name) => typeof name === "string");
}

function collectNames(node: AstNode): ReadonlySet<string> {
  const names = new Set<string>();
  visit(node, (one) => {
    if (one.type === "Identifier") names.add(String(one["name"]));
  });
  return names;
}

function readSpecifier(node: AstNode): string | undefined {
  const source = node["source"] as AstNode | null | undefined;
  return source === null || source === undefined ? undefined : readString(source);
}

/** `import("module").Name`, of which the first name counts. */
function readImportType(node: AstNode): Imported {
  let qualifier = node["qualifier"] as AstNode | null;
  while (qualifier?.type === "TSQualifiedName") qualifier = qualifier["left"] as AstNode;
  const name = qualifier === null ? "*" : String(findName(qualifier));
  return { specifier: readSpecifier(node)!, name, isType: true };
}

/** The specifier of a file beside another. */
function nameFile(from: string, to: string): string {
  const path = relative(dirname(from), to)
    .replaceAll(sep, "/")
    .replace(/\.d\.ts$/, ".js");
  return path.startsWith(".") ? path : `./${path}`;
}

function formatPair(name: string, known: string): string {
  return name === known ? name : `${name} as ${known}`;
}
