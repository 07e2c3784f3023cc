// The built form of programs: written by `npm run build:services`, used while the sources are those that it was made of.
import { createHash } from "node:crypto";
import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
/** Folder of all builds. Its file `current` contains the name of the one that is used. */
const BUILDS = join("dist", "services");
const PROGRAM = /^@platform\/([\w-]+)\/main$/;

/**
 * Returns the URL of the built form of a program, whose main module is a package's subpath; undefined if there is none, or a
 * source has changed since. `PLATFORM_FORM=source` is always undefined; with `PLATFORM_FORM=built` the sources are not
 * compared. Throws for other values.
 * @param {string} main
 * @param {string} root folder of the installation
 */
export function findBuilt(main, root = ROOT) {
  const form = process.env.PLATFORM_FORM || "";
  if (!["", "source", "built"].includes(form)) {
    throw new Error(`PLATFORM_FORM is "${form}"; expected "source" or "built"`);
  }
  const [, name] = PROGRAM.exec(main) ?? [];
  if (name === undefined) return undefined;
  // A package has no sources, so it runs in its built form everywhere.
  const hasSources = existsSync(join(root, "services", name, "src/main.ts"));
  if (hasSources && (form === "source" || process.versions.bun)) return undefined;
  const folder = findFolder(root);
  const file = folder && join(folder, `${name}.js`);
  if (!file || !statSync(file, { throwIfNoEntry: false })) return undefined;
  const isUsable = form === "built" || isCurrent(root, join(folder, `${name}.sources.json`));
  return isUsable ? pathToFileURL(file).href : undefined;
}

function findFolder(root) {
  try {
    return join(root, BUILDS, readFileSync(join(root, BUILDS, "current"), "utf8").trim());
  } catch {
    return undefined;
  }
}

// By size and time; the content decides about files that were copied, or changed and changed back.
function isCurrent(root, list) {
  let sources;
  try {
    sources = JSON.parse(readFileSync(list, "utf8"));
  } catch {
    return false;
  }
  let isMoved = false;
  for (const source of sources) {
    const [path, size, mtimeMs, digest] = source;
    const stats = statSync(join(root, path), { throwIfNoEntry: false });
    if (stats === undefined || stats.size !== size) return false;
    if (stats.mtimeMs === mtimeMs) continue;
    if (hashFile(join(root, path)) !== digest) return false;
    source[2] = stats.mtimeMs;
    isMoved = true;
  }
  if (isMoved) replaceList(list, sources);
  return true;
}

function hashFile(path) {
  return createHash("sha256").update(readFileSync(path)).digest("base64url");
}

// The next start is faster. An installation that cannot be written works as well.
function replaceList(list, sources) {
  const draft = `${list}.${process.pid}`;
  try {
    writeFileSync(draft, JSON.stringify(sources));
    renameSync(draft, list);
  } catch {
    try {
      rmSync(draft, { force: true });
    } catch {
      // It could not be created.
    }
  }
}
