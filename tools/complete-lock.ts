// `node tools/complete-lock.ts`: names in package-lock.json the optional packages of other platforms.
// npm leaves out of the lock what the registry at hand does not carry, and `npm ci` then refuses
// the lock as out of sync. The version is known from the dependent; os and cpu are in the name.
import { readFileSync, writeFileSync } from "node:fs";

const LOCK_PATH = "package-lock.json";
const OS_NAMES = ["android", "darwin", "freebsd", "linux", "openharmony", "win32"];
const CPU_NAMES = ["arm", "arm64", "ia32", "ppc64", "riscv64", "s390x", "x64"];

interface LockedPackage {
  version?: string;
  cpu?: string[];
  dev?: boolean;
  optional?: boolean;
  os?: string[];
  optionalDependencies?: Record<string, string>;
}

const lock = JSON.parse(readFileSync(LOCK_PATH, "utf8")) as {
  packages: Record<string, LockedPackage>;
};
const added: Record<string, LockedPackage> = {};
for (const [path, dependent] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(dependent.optionalDependencies ?? {})) {
    const hoisted = `node_modules/${name}`;
    if (hoisted in lock.packages || `${path}/${hoisted}` in lock.packages) continue;
    added[hoisted] = describePlatformPackage(name, version, dependent.dev === true);
  }
}
const sorted = Object.entries({ ...lock.packages, ...added }).sort(([a], [b]) => (a < b ? -1 : 1));
lock.packages = Object.fromEntries(sorted);
if (Object.keys(added).length > 0) {
  writeFileSync(LOCK_PATH, `${JSON.stringify(lock, null, 2)}\n`);
}
console.log(`${Object.keys(added).length} packages added to ${LOCK_PATH}`);

function describePlatformPackage(name: string, version: string, dev: boolean): LockedPackage {
  const words = (name.split("/").at(-1) ?? "").split("-");
  const os = words.find((word) => OS_NAMES.includes(word));
  const cpu = words.find((word) => CPU_NAMES.includes(word));
  if (os === undefined || !/^\d/.test(version)) {
    throw new Error(`${name}@${version}: not a platform package of one version; add it by hand`);
  }
  return {
    version,
    ...(cpu === undefined ? {} : { cpu: [cpu] }),
    ...(dev ? { dev } : {}),
    optional: true,
    os: [os],
  };
}
