// The package of this installation: written once, and again when a source has changed. An unpacked package is its own.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { INSTALLATION, isPackaged, nameTarball, readVersion } from "./layout.ts";
import { listArchived, writeArchive } from "./archive.ts";
import { listContent, writePackage } from "./write-package.ts";

/** A package as a folder and as a file. */
export interface Packed {
  readonly version: string;
  /** Absolute path of the unpacked package. */
  readonly folder: string;
  /** Absolute path of `platform-VERSION.tgz`. */
  readonly tarball: string;
}

const PACKAGES = join(INSTALLATION, "dist/package");
const DRAFT = "draft-";
/** Projects link to the folder of the package that they were created with. */
const KEPT = 3;
const DRAFT_MS_MAX = 3_600_000;
/** All that the package is made of, besides installed packages. */
const SOURCES = [
  "{packages,services}/*/{package.json,src/**/*.*}",
  "examples/**/*.*",
  "bin/*.js",
  "package.json",
  "package-lock.json",
];
const PAGE = "apps/console/dist/build.json";
const PREFIX = "package";

/** Returns the package, which is written if it is missing or stale; that is reported, because it takes some seconds. */
export async function preparePackage(report: (line: string) => void): Promise<Packed> {
  return isPackaged() ? packItself() : packCheckout(report);
}

async function packCheckout(report: (line: string) => void): Promise<Packed> {
  buildPage();
  const version = readVersion();
  const digest = hashSources();
  const found = describe(join(PACKAGES, digest), version);
  if (existsSync(found.tarball)) return found;
  report("Packing the platform for projects, once per version: this takes some seconds.");
  mkdirSync(PACKAGES, { recursive: true });
  const draft = join(PACKAGES, `${DRAFT}${process.pid}`);
  rmSync(draft, { recursive: true, force: true });
  try {
    const made = describe(draft, version);
    await writePackage(INSTALLATION, made.folder);
    await packFolder(made.folder, made.tarball);
    rename(draft, join(PACKAGES, digest));
    removeOld(digest);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return found;
}

function describe(folder: string, version: string): Packed {
  return { version, folder: join(folder, PREFIX), tarball: join(folder, nameTarball(version)) };
}

/** Packs a package folder as npm does: below `package/`. */
async function packFolder(folder: string, tarball: string): Promise<void> {
  await writeArchive(listArchived(folder, listContent(folder), PREFIX), tarball);
}

// A release has the file; npm has only unpacked it. Its folder may belong to root.
async function packItself(): Promise<Packed> {
  const version = readVersion();
  const released = join(INSTALLATION, nameTarball(version));
  if (existsSync(released)) return { version, folder: INSTALLATION, tarball: released };
  const cache = process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  const folder = join(cache, "platform", hashText(INSTALLATION + readManifestTime()));
  const packed: Packed = {
    version,
    folder: INSTALLATION,
    tarball: join(folder, nameTarball(version)),
  };
  if (existsSync(packed.tarball)) return packed;
  mkdirSync(folder, { recursive: true });
  const draft = `${packed.tarball}.${process.pid}`;
  try {
    await packFolder(INSTALLATION, draft);
    renameSync(draft, packed.tarball);
  } finally {
    rmSync(draft, { force: true });
  }
  return packed;
}

function readManifestTime(): string {
  return String(statSync(join(INSTALLATION, "package.json")).mtimeMs);
}

/** Builds the console's page if its sources have changed. */
function buildPage(): void {
  const program = join(INSTALLATION, "apps/console/build.ts");
  const run = spawnSync(process.execPath, [program, "--if-stale"], { encoding: "utf8" });
  if (run.status === 0 || existsSync(join(INSTALLATION, PAGE))) return;
  throw new Error(`the console's page is missing and could not be built: ${run.stderr.trim()}`);
}

function hashSources(): string {
  const hash = createHash("sha256");
  for (const path of [...globSync(SOURCES, { cwd: INSTALLATION }).toSorted(), PAGE]) {
    const file = join(INSTALLATION, path);
    if (!statSync(file).isFile()) continue;
    hash.update(`${path}\0`).update(readFileSync(file)).update("\0");
  }
  return hash.digest("hex").slice(0, 16);
}

function hashText(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

function rename(draft: string, folder: string): void {
  try {
    renameSync(draft, folder);
  } catch (error) {
    // Another process has packed the same sources.
    if (!["ENOTEMPTY", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

function removeOld(current: string): void {
  const found = readdirSync(PACKAGES)
    .filter((name) => name !== current)
    .map((name) => ({ name, mtimeMs: statSync(join(PACKAGES, name)).mtimeMs }))
    .toSorted((a, b) => b.mtimeMs - a.mtimeMs);
  const drafts = found.filter(
    ({ name, mtimeMs }) => name.startsWith(DRAFT) && mtimeMs < Date.now() - DRAFT_MS_MAX,
  );
  const old = found.filter(({ name }) => !name.startsWith(DRAFT)).slice(KEPT - 1);
  for (const { name } of [...drafts, ...old]) {
    rmSync(join(PACKAGES, name), { recursive: true, force: true });
  }
}
