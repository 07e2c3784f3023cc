// Declarations of what projects import: those that TypeScript emits, and of each only what the faces reach. Imports of the
// platform's packages become imports of files, so that a project resolves none of them.
import { spawnSync } from "node:child_process";
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { ReachedTypes } from "./reached-types.ts";

/** Options of {@link writeDeclarations}. */
export interface DeclarationsOptions {
  /** Absolute path of the checkout. */
  readonly root: string;
  /** Absolute path of the folder that is written. */
  readonly folder: string;
  /** Modules whose declarations are public, relative to the checkout. */
  readonly faces: readonly string[];
}

/** Packages of declarations alone become a file among the others: paths in the checkout and among the declarations. */
const COPIED: Readonly<Record<string, { from: string; to: string }>> = {
  "@standard-schema/spec": {
    from: "node_modules/@standard-schema/spec/dist/index.d.ts",
    to: "packages/standard-schema/index.d.ts",
  },
};
const OUTPUT_CHARACTERS_MAX = 4_000;

/** Writes `FOLDER/PATH.d.ts` for each module that the faces reach. Throws for types of packages that are not part of them. */
export async function writeDeclarations(options: DeclarationsOptions): Promise<void> {
  const { root, folder, faces } = options;
  const emitted = `${folder}.emitted`;
  try {
    emit(root, emitted, faces);
    const { parseAst } = await import("rolldown/parseAst");
    const own = listOwnModules(root).map(([name, [file]]) => [name, relative(root, file)] as const);
    const copied = Object.entries(COPIED).map(([name, { to }]) => [name, to] as const);
    const types = new ReachedTypes({
      folder: emitted,
      modules: new Map([...own, ...copied].map(([name, path]) => [name, join(emitted, path)])),
      installed: ["ws"],
      parse: (text) => parseAst(text, { lang: "dts" }),
    });
    for (const path of faces) types.addFace(join(emitted, path.replace(/\.ts$/, ".d.ts")));
    for (const [path, text] of types.write()) {
      const target = join(folder, path);
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, text);
    }
  } finally {
    rmSync(emitted, { recursive: true, force: true });
  }
}

/** Runs TypeScript. Copied packages are put among its files. */
function emit(root: string, folder: string, faces: readonly string[]): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const config = join(folder, "tsconfig.json");
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    stripInternal: true,
    rootDir: root,
    outDir: folder,
    typeRoots: [join(root, "node_modules/@types")],
    // TypeScript emits nothing for modules that it finds below node_modules.
    paths: Object.fromEntries(listOwnModules(root)),
  };
  const files = faces.map((path) => join(root, path));
  const content = { extends: join(root, "tsconfig.json"), compilerOptions, files, include: [] };
  writeFileSync(config, JSON.stringify(content));
  const compiler = join(
    dirname(createRequire(join(root, "package.json")).resolve("typescript/package.json")),
    "bin/tsc",
  );
  const run = spawnSync(process.execPath, [compiler, "-p", config], { encoding: "utf8" });
  if (run.status !== 0) {
    throw new Error(
      `the declarations could not be written: ${run.stdout.slice(0, OUTPUT_CHARACTERS_MAX)}`,
    );
  }
  for (const { from, to } of Object.values(COPIED)) {
    const target = join(folder, to);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, readFileSync(join(root, from)));
  }
}

/** Absolute paths of all modules of the platform's packages, by the names by which they are imported. */
function listOwnModules(root: string): [string, [string]][] {
  return globSync("packages/*/package.json", { cwd: root }).flatMap((path) => {
    const { name, exports = {} } = JSON.parse(readFileSync(join(root, path), "utf8")) as {
      name: string;
      exports?: Readonly<Record<string, string>>;
    };
    return Object.entries(exports).map(([face, file]): [string, [string]] => [
      name + face.slice(1),
      [join(root, dirname(path), file)],
    ]);
  });
}
