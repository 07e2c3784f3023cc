// The package with all that it needs on a machine without Node: one folder, which is unpacked and started.
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  listArchived,
  writeArchive,
  type ArchivedFile,
} from "../../services/runtime/src/package/archive.ts";
import { LOCK_ENTRIES, nameTarball } from "../../services/runtime/src/package/layout.ts";
import type { LockEntries, LockEntry } from "../../services/runtime/src/package/lock-entries.ts";
import type { Packed } from "../../services/runtime/src/package/packed.ts";
import { listContent } from "../../services/runtime/src/package/write-package.ts";

/** Systems of releases, as Node names them: both with the C library of GNU. */
export const TARGETS = ["linux-x64", "linux-arm64"] as const;

/** One of {@link TARGETS}. */
export type Target = (typeof TARGETS)[number];

/** Options of {@link writeStandalone}. */
export interface StandaloneOptions {
  /** The checkout. */
  readonly root: string;
  readonly packed: Packed;
  readonly target: Target;
  /** Path of the archive. */
  readonly path: string;
}

const LIBC = "glibc";
/** Programs that remove symbols, by processor: half of Node's file. */
const STRIP = {
  "linux-x64": ["x86_64-linux-gnu-strip", "strip", "llvm-strip"],
  "linux-arm64": ["aarch64-linux-gnu-strip", "llvm-strip"],
};
const LAUNCHER = `#!/bin/sh
# The platform's command line, with the Node beside it.
file=$0
while [ -L "$file" ]; do
  link=$(readlink "$file")
  case $link in
    /*) file=$link ;;
    *) file=$(dirname "$file")/$link ;;
  esac
done
folder=$(CDPATH= cd -- "$(dirname -- "$file")" && pwd -P)
exec "$folder/node_modules/NODE/bin/node" "$folder/bin/platform.js" "$@"
`;

/** True for the name of a target. */
export function isTarget(name: string): name is Target {
  return (TARGETS as readonly string[]).includes(name);
}

/** Writes the archive; its files are below `platform-VERSION-TARGET/`. Throws an Error that names a missing package. */
export async function writeStandalone(options: StandaloneOptions): Promise<void> {
  const { packed, target, path } = options;
  const prefix = `platform-${packed.version}-${target}`;
  const work = mkdtempSync(join(tmpdir(), "release-"));
  try {
    const content = listContent(packed.folder).filter((name) => !name.startsWith("node_modules/"));
    const files = listArchived(packed.folder, content, prefix);
    for (const [name, entry] of listPackages(packed, target)) {
      const modules = findModules(name, entry, options, work);
      const found = listArchived(modules, [name], `${prefix}/node_modules`);
      files.push(...(name === `node-${target}` ? strip(found, target, work) : found));
    }
    const launcher = join(work, "platform");
    writeFileSync(launcher, LAUNCHER.replace("NODE", `node-${target}`));
    files.push({ path: `${prefix}/platform`, file: launcher, isExecutable: true });
    const tarball = nameTarball(packed.version);
    files.push({ path: `${prefix}/${tarball}`, file: packed.tarball, isExecutable: false });
    await writeArchive(files, path);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The packages inside the package and the optional ones, of this target. */
function listPackages({ folder }: Packed, target: Target): [string, LockEntry][] {
  const { bundled, optional } = JSON.parse(
    readFileSync(join(folder, LOCK_ENTRIES), "utf8"),
  ) as LockEntries;
  const [os = "", cpu = ""] = target.split("-");
  const allows = (allowed: unknown, value: string): boolean =>
    allowed === undefined || [allowed].flat().includes(value);
  return Object.entries({ ...bundled, ...optional }).filter(
    ([path, entry]) =>
      // The folder of another package contains it.
      !path.includes("/node_modules/") &&
      allows(entry["os"], os) &&
      allows(entry["cpu"], cpu) &&
      allows(entry["libc"], LIBC),
  );
}

/** The folder that has the package as `NAME`: that of the package, that of the checkout, or a new one. */
function findModules(
  name: string,
  entry: LockEntry,
  { root, packed }: StandaloneOptions,
  work: string,
): string {
  for (const folder of [packed.folder, root]) {
    const manifest = join(folder, "node_modules", name, "package.json");
    if (!existsSync(manifest)) continue;
    const { version } = JSON.parse(readFileSync(manifest, "utf8")) as { version: string };
    if (version === entry.version) return join(folder, "node_modules");
  }
  const modules = join(work, "node_modules");
  fetchPackage(name, entry, join(modules, name), work);
  return modules;
}

/** Fetches a package from npm's registry, and compares it with the hash of the lock file. */
function fetchPackage(name: string, entry: LockEntry, folder: string, work: string): void {
  const wanted = `${name}@${entry.version}`;
  const run = spawnSync("npm", ["pack", wanted, "--json", "--pack-destination", work], {
    encoding: "utf8",
  });
  if (run.status !== 0) {
    throw new Error(`${wanted} is not installed and could not be fetched: ${run.stderr.trim()}`);
  }
  const file = join(work, `${name.replace("@", "").replace("/", "-")}-${entry.version}.tgz`);
  const hash = `sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}`;
  if (entry.integrity !== undefined && hash !== entry.integrity) {
    throw new Error(`${wanted} has another content than package-lock.json says`);
  }
  mkdirSync(folder, { recursive: true });
  execFileSync("tar", ["-xzf", file, "-C", folder, "--strip-components=1", "--no-same-owner"]);
}

/** Node without its symbols, if a program for this processor is there. */
function strip(files: readonly ArchivedFile[], target: Target, work: string): ArchivedFile[] {
  return files
    .filter(({ path }) => /(?:bin\/node|package\.json|LICENSE)$/.test(path))
    .map((one) => {
      if (!one.path.endsWith("bin/node")) return one;
      const file = join(work, `node-${target}`);
      copyFileSync(one.file, file);
      chmodSync(file, 0o755);
      const isDone = STRIP[target].some((program) => spawnSync(program, [file]).status === 0);
      if (!isDone) console.error(`${target}: Node keeps its symbols: install ${STRIP[target][0]}`);
      return { ...one, file, isExecutable: true };
    });
}
