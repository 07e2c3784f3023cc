// The files of a project, and its configuration for TypeScript.
import { existsSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** Folders that contain no text of the author. */
const SKIPPED = new Set(["node_modules", "dist", "data"]);
const ENTRIES_MAX = 50_000;
const FILES_MAX = 2_000;

/** Files whose name matches, below a folder: in the order of their paths, at most 2000. */
export function listFiles(folder: string, name: RegExp): string[] {
  const found: string[] = [];
  const folders = [folder];
  let entries = 0;
  for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
    for (const entry of readEntries(next)) {
      if (++entries > ENTRIES_MAX || found.length >= FILES_MAX) return found.sort();
      const path = join(next, entry.name);
      const isSkipped = entry.name.startsWith(".") || SKIPPED.has(entry.name);
      if (entry.isDirectory() && !isSkipped) folders.push(path);
      else if (entry.isFile() && name.test(entry.name)) found.push(path);
    }
  }
  return found.sort();
}

function readEntries(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // It was removed, or is not readable for this user.
    return [];
  }
}

/**
 * Files that a project lacks, by path: TypeScript reads them as if they were there. A project with a tsconfig.json is
 * checked as that says. `files` are the only ones to check; default: all in the folder.
 */
export function createMissingFiles(
  folder: string,
  files: readonly string[] | undefined,
): ReadonlyMap<string, string> {
  const missing = new Map<string, string>();
  const config = join(folder, "tsconfig.json");
  const manifest = join(folder, "package.json");
  if (!existsSync(config)) missing.set(config, JSON.stringify(createConfig(folder, files)));
  if (!existsSync(manifest)) missing.set(manifest, '{ "type": "module" }');
  return missing;
}

function createConfig(folder: string, files: readonly string[] | undefined): object {
  // A package has JavaScript, and declarations below it.
  const module = fileURLToPath(import.meta.resolve("@platform/service"));
  const isSource = module.endsWith(".ts");
  const source = join(dirname(module), isSource ? "" : "types/packages/service/src");
  const ending = isSource ? ".ts" : ".d.ts";
  const types = resolve(dirname(module), isSource ? "../../.." : "../..", "node_modules/@types");
  return {
    compilerOptions: {
      target: "esnext",
      lib: ["esnext"],
      module: "nodenext",
      moduleResolution: "nodenext",
      moduleDetection: "force",
      noEmit: true,
      strict: true,
      skipLibCheck: true,
      allowImportingTsExtensions: true,
      erasableSyntaxOnly: true,
      resolveJsonModule: true,
      types: ["node"],
      typeRoots: [types, join(folder, "node_modules/@types")],
      paths: {
        "@platform/service": [join(source, `index${ending}`)],
        "@platform/service/testing": [join(source, `testing${ending}`)],
      },
    },
    ...(files === undefined
      ? { include: ["**/*", "tsconfig.json", "package.json"], exclude: [...SKIPPED] }
      : { files: [...files, join(folder, "tsconfig.json"), join(folder, "package.json")] }),
  };
}
