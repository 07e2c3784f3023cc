// The package as a dependency of a project: a file in `vendor/`, by its path in package.json, by its hash in the lock file.
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { LOCK_ENTRIES, nameTarball, PACKAGE_NAME } from "./layout.ts";
import type { LockEntries, LockEntry } from "./lock-entries.ts";
import type { Packed } from "./packed.ts";

/** A package.json. */
interface Manifest {
  readonly name?: string;
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly [key: string]: unknown;
}

interface Lock {
  readonly packages?: Readonly<Record<string, LockEntry>>;
  readonly [key: string]: unknown;
}

const VENDOR = "vendor";
const MANIFEST = "package.json";
const LOCK = "package-lock.json";
const LOCK_VERSION = 3;
const OWN_ENTRY = `node_modules/${PACKAGE_NAME}`;
/** Parts of a package.json that a lock file repeats. */
const REPEATED = ["version", "license", "bin", "engines", "dependencies", "optionalDependencies"];

/** The specifier of the package in a project's package.json; undefined if it is no dependency. */
export function readDependency(folder: string): string | undefined {
  const { dependencies, devDependencies } = readJson(join(folder, MANIFEST)) as Manifest;
  return dependencies?.[PACKAGE_NAME] ?? devDependencies?.[PACKAGE_NAME];
}

/** The version of the package that is installed in a project; undefined if it cannot be read. */
export function readInstalledVersion(folder: string): string | undefined {
  try {
    const { version } = readJson(join(folder, OWN_ENTRY, MANIFEST)) as Manifest;
    return typeof version === "string" ? version : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Makes a package the dependency of a project: `vendor/platform-VERSION.tgz`, package.json and package-lock.json. Files of
 * earlier versions are removed at the end. Other dependencies stay as they are. Throws for files that are no JSON, before
 * anything has changed.
 */
export function writeDependency(folder: string, packed: Packed): void {
  const file = `${VENDOR}/${nameTarball(packed.version)}`;
  const manifest = addDependency(readJson(join(folder, MANIFEST)) as Manifest, `file:${file}`);
  const lockPath = join(folder, LOCK);
  const former = existsSync(lockPath) ? (readJson(lockPath) as Lock) : {};
  const lock = lockDependency(former, manifest, file, packed);
  mkdirSync(join(folder, VENDOR), { recursive: true });
  replace(join(folder, file), (draft) => copyFileSync(packed.tarball, draft));
  replace(join(folder, MANIFEST), (draft) => writeFileSync(draft, formatJson(manifest)));
  replace(lockPath, (draft) => writeFileSync(draft, formatJson(lock)));
  for (const old of globSync(`${VENDOR}/platform-*.tgz`, { cwd: folder })) {
    if (old !== file) rmSync(join(folder, old), { force: true });
  }
}

function replace(path: string, write: (draft: string) => void): void {
  const draft = `${path}.${process.pid}`;
  try {
    write(draft);
    renameSync(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Links a project to an unpacked package, and to its command line: a project runs before npm has installed its dependencies.
 * What npm has installed stays.
 */
export function linkPackage(folder: string, target: string): void {
  link(target, join(folder, OWN_ENTRY), "dir");
  link(join(target, "bin/platform.js"), join(folder, "node_modules/.bin/platform"), "file");
}

/** Links to `target`; a link of another installation is replaced, anything else is left. */
function link(target: string, path: string, type: "dir" | "file"): void {
  mkdirSync(dirname(path), { recursive: true });
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isSymbolicLink()) return;
  // npm's link to the file of a package that it has installed.
  if (type === "file" && isInstalled(dirname(dirname(path)))) return;
  rmSync(path, { force: true });
  symlinkSync(target, path, type);
}

function isInstalled(modules: string): boolean {
  const found = lstatSync(join(modules, PACKAGE_NAME), { throwIfNoEntry: false });
  return found?.isDirectory() === true;
}

function addDependency(manifest: Manifest, specifier: string): Manifest {
  const { dependencies, devDependencies } = manifest;
  if (devDependencies?.[PACKAGE_NAME] !== undefined) {
    return { ...manifest, devDependencies: { ...devDependencies, [PACKAGE_NAME]: specifier } };
  }
  return { ...manifest, dependencies: sort({ ...dependencies, [PACKAGE_NAME]: specifier }) };
}

/** The lock file that npm would write. */
function lockDependency(former: Lock, manifest: Manifest, file: string, packed: Packed): Lock {
  const { bundled, optional } = readJson(join(packed.folder, LOCK_ENTRIES)) as LockEntries;
  const others = Object.entries(former.packages ?? {}).filter(
    ([path]) => path !== "" && path !== OWN_ENTRY && !path.startsWith(`${OWN_ENTRY}/`),
  );
  const packages = new Map<string, LockEntry>(others);
  packages.set(OWN_ENTRY, {
    ...pick(readJson(join(packed.folder, MANIFEST)) as LockEntry, [
      ...REPEATED,
      "bundleDependencies",
    ]),
    resolved: `file:${file}`,
    integrity: hashTarball(packed.tarball),
  });
  for (const [name, entry] of Object.entries(bundled)) {
    packages.set(`${OWN_ENTRY}/node_modules/${name}`, entry);
  }
  for (const [name, entry] of Object.entries(optional)) {
    const path = `node_modules/${name}`;
    const known = packages.get(path);
    const isOwn =
      known === undefined || (known.optional === true && !hasDependency(manifest, name));
    if (isOwn) packages.set(path, entry);
    // One of another version belongs to the project.
    else if (known.version !== entry.version) packages.set(`${OWN_ENTRY}/${path}`, entry);
  }
  const { name, version } = manifest;
  const root = pick(manifest, [
    "name",
    ...REPEATED,
    "devDependencies",
    "peerDependencies",
    "workspaces",
  ]);
  return {
    ...former,
    ...(name === undefined ? {} : { name }),
    ...(version === undefined ? {} : { version }),
    lockfileVersion: LOCK_VERSION,
    requires: true,
    packages: { "": root, ...sort(Object.fromEntries(packages)) },
  };
}

function hasDependency({ dependencies, devDependencies }: Manifest, name: string): boolean {
  return dependencies?.[name] !== undefined || devDependencies?.[name] !== undefined;
}

function hashTarball(path: string): string {
  return `sha512-${createHash("sha512").update(readFileSync(path)).digest("base64")}`;
}

function pick(value: Readonly<Record<string, unknown>>, names: readonly string[]): LockEntry {
  return Object.fromEntries(
    names.flatMap((name) => (value[name] === undefined ? [] : [[name, value[name]]])),
  );
}

function sort<T>(record: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new Error(`${path} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

function formatJson(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
