// The modules of a package: the folders and files directly below `src/`, their order, and how they import each other.
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const IMPORT = /(?:\bfrom|\bimport|\bimport\(|\bimport\.meta\.resolve\()\s*"([^"]+)"/g;
/** A file that runs as a separate thread or process. */
const ENTRY = /\bnew URL\("([^"]+)", import\.meta\.url\)/g;

/** One import of another file of the same package, or its start as a thread; paths are relative to `src/`. */
export interface FileImport {
  from: string;
  to: string;
}

/** All imports of one module from another. */
export interface Arrow {
  from: string;
  to: string;
  imports: FileImport[];
}

export interface PackageModules {
  /** Path of the package from the root of the repository. */
  folder: string;
  /** The modules top to bottom, as the package declares them; in alphabetical order if it does not. */
  order: string[];
  isDeclared: boolean;
  /** Files and lines of each module. */
  sizes: Map<string, { files: number; lines: number }>;
  arrows: Arrow[];
  /** Arrows to a module that is not below the importing one. */
  upward: Arrow[];
  /** Groups of modules that reach each other. */
  rings: string[][];
  /** Groups of files that reach each other. */
  fileRings: string[][];
}

/** The specifiers of all imports in a source text. */
export function findImports(text: string): string[] {
  return [...text.matchAll(IMPORT)].map((match) => match[1]!);
}

/** Reads all packages and services that have a `src/`. */
export function readAllModules(root = "."): PackageModules[] {
  return globSync("{packages,services,apps}/*/src", { cwd: root })
    .sort()
    .map((path) => readModules(root, dirname(path)));
}

/** Reads the modules of one package. The order is `modules` in its package.json, top to bottom. */
export function readModules(root: string, folder: string): PackageModules {
  const { modules: declared } = JSON.parse(
    readFileSync(join(root, folder, "package.json"), "utf8"),
  ) as { modules?: string[] };
  const source = join(root, folder, "src");
  const files = globSync("**/*.{ts,tsx}", { cwd: source }).sort();
  const sizes: PackageModules["sizes"] = new Map();
  const imports: FileImport[] = [];
  for (const from of files) {
    const text = readFileSync(join(source, from), "utf8");
    const size = sizes.get(getModule(from)) ?? { files: 0, lines: 0 };
    size.files += 1;
    size.lines += text.split("\n").length - 1;
    sizes.set(getModule(from), size);
    const entries = [...text.matchAll(ENTRY)].map((match) => match[1]!);
    for (const specifier of [...findImports(text), ...entries]) {
      if (!specifier.startsWith(".")) continue;
      const to = relative(source, join(source, dirname(from), specifier));
      if (files.includes(to)) imports.push({ from, to });
    }
  }
  const arrows = gatherArrows(imports);
  const order = declared ?? [...sizes.keys()].sort();
  const rows = new Map(order.map((name, row) => [name, row]));
  return {
    folder,
    order,
    isDeclared: declared !== undefined,
    sizes,
    arrows,
    upward: arrows.filter(({ from, to }) => (rows.get(to) ?? -1) <= (rows.get(from) ?? -1)),
    rings: findRings([...sizes.keys()], arrows),
    fileRings: findRings(files, imports),
  };
}

/** The module of a file: the folder directly below `src/`, or the file itself. */
export function getModule(path: string): string {
  return path.split("/", 1)[0]!;
}

function gatherArrows(imports: readonly FileImport[]): Arrow[] {
  const byEnds = new Map<string, Arrow>();
  for (const one of imports) {
    const [from, to] = [getModule(one.from), getModule(one.to)];
    if (from === to) continue;
    const arrow = byEnds.get(`${from}\n${to}`) ?? { from, to, imports: [] };
    arrow.imports.push(one);
    byEnds.set(`${from}\n${to}`, arrow);
  }
  return [...byEnds.values()];
}

/** Strongly connected components of more than one node (Tarjan's algorithm). */
function findRings(
  nodes: readonly string[],
  edges: readonly { from: string; to: string }[],
): string[][] {
  const targets = new Map<string, string[]>(nodes.map((node) => [node, []]));
  for (const { from, to } of edges) targets.get(from)?.push(to);
  const indexes = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const rings: string[][] = [];
  const visit = (node: string): void => {
    const index = indexes.size;
    indexes.set(node, index);
    let low = index;
    stack.push(node);
    for (const target of targets.get(node)!) {
      if (!indexes.has(target)) visit(target);
      if (stack.includes(target)) low = Math.min(low, lowest.get(target) ?? indexes.get(target)!);
    }
    lowest.set(node, low);
    if (low !== index) return;
    const ring = stack.splice(stack.indexOf(node));
    if (ring.length > 1) rings.push(ring.sort());
  };
  for (const node of nodes) if (!indexes.has(node)) visit(node);
  return rings;
}
