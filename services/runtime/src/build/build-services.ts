// `npm run build:services`: writes the built form of the programs into dist/services. With `--background` at a low priority,
// and silently without effect where the installation cannot be written or has no bundler.
import { createHash } from "node:crypto";
import {
  accessSync,
  constants,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { constants as osConstants, setPriority } from "node:os";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { loadBundler, MissingBundlerError } from "./bundler.ts";
import { completeSources, SUPERVISOR, writePrograms } from "./programs.ts";
import { writeProjectProcess } from "./project-process.ts";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
const BUILDS = join(ROOT, "dist", "services");
const DRAFT = "draft-";
/** Running programs load parts of the build that they were started from. */
const BUILDS_KEPT = 3;
/** A draft of a build that was killed. */
const DRAFT_MS_MAX = 3_600_000;

if (!process.argv.includes("--background")) await build();
else if (isWritable() && (await hasBundler())) {
  setPriority(osConstants.priority.PRIORITY_LOW);
  await build();
}

function isWritable(): boolean {
  try {
    mkdirSync(BUILDS, { recursive: true });
    accessSync(BUILDS, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

async function hasBundler(): Promise<boolean> {
  try {
    await loadBundler();
    return true;
  } catch (error) {
    if (error instanceof MissingBundlerError) return false;
    throw error;
  }
}

// Readers see whole builds only: the folder is complete before it gets its name, and has its name before it is current.
async function build(): Promise<void> {
  const before = listTimes();
  mkdirSync(BUILDS, { recursive: true });
  const draft = join(BUILDS, `${DRAFT}${process.pid}`);
  rmSync(draft, { recursive: true, force: true });
  try {
    const programs = new Map(await writePrograms({ root: ROOT, folder: draft }));
    const project = await writeProjectProcess({ root: ROOT, folder: draft });
    const known = programs.get(SUPERVISOR)!;
    programs.set(SUPERVISOR, [...new Set([...known, ...completeSources(project)])].toSorted());
    const digest = createHash("sha256");
    for (const [name, paths] of programs) {
      const sources = paths.map((path) => describeSource(path, before));
      for (const [path, , , content] of sources) digest.update(`${path}\0${content}\n`);
      writeFileSync(join(draft, `${name}.sources.json`), JSON.stringify(sources));
    }
    const name = digest.digest("hex").slice(0, 16);
    rename(draft, join(BUILDS, name));
    const current = join(BUILDS, `${DRAFT}${process.pid}.current`);
    writeFileSync(current, `${name}\n`);
    renameSync(current, join(BUILDS, "current"));
    removeOld(name);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** Times of all files that may take part. */
function listTimes(): ReadonlyMap<string, number> {
  const paths = globSync(["{packages,services}/*/{package.json,src/**/*.*}", "package-lock.json"], {
    cwd: ROOT,
  });
  return new Map(
    paths.map((path) => [path.replaceAll(sep, "/"), statSync(join(ROOT, path)).mtimeMs]),
  );
}

/** Path, size, time and content, as bin/built.js compares them. */
function describeSource(
  path: string,
  before: ReadonlyMap<string, number>,
): [string, number, number, string] {
  const { size, mtimeMs } = statSync(join(ROOT, path));
  if (mtimeMs !== before.get(path)) {
    throw new Error(`${path} has changed during the build: build again`);
  }
  const content = createHash("sha256").update(readFileSync(join(ROOT, path)));
  return [path, size, mtimeMs, content.digest("base64url")];
}

function rename(draft: string, folder: string): void {
  try {
    renameSync(draft, folder);
  } catch (error) {
    // The same sources were built before, or at the same time.
    if (!["ENOTEMPTY", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

function removeOld(current: string): void {
  const found = readdirSync(BUILDS)
    .filter((name) => name !== current && name !== "current")
    .map((name) => ({ name, mtimeMs: statSync(join(BUILDS, name)).mtimeMs }))
    .toSorted((a, b) => b.mtimeMs - a.mtimeMs);
  const drafts = found.filter(
    ({ name, mtimeMs }) => name.startsWith(DRAFT) && mtimeMs < Date.now() - DRAFT_MS_MAX,
  );
  const builds = found.filter(({ name }) => !name.startsWith(DRAFT)).slice(BUILDS_KEPT - 1);
  for (const { name } of [...drafts, ...builds]) {
    rmSync(join(BUILDS, name), { recursive: true, force: true });
  }
}
