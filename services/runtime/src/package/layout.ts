// Names and places of the package, and of the installation that it is made of.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Name inside the package, by which it imports itself, and of the dependency of projects. Projects name a file, never a
 * version: at public registries, the scope belongs to somebody else.
 */
export const PACKAGE_NAME = "@platform/service";

/** Folder of this installation: a checkout, or an unpacked package. */
export const INSTALLATION: string = fileURLToPath(new URL("../../../..", import.meta.url));

/** Programs of a package, relative to it. */
export const PROGRAMS_FOLDER = "dist/services/package";
/** JavaScript and declarations of what projects import, relative to a package. */
export const LIBRARY_FOLDER = "dist/service";
/** Entries for lock files of projects, relative to a package. */
export const LOCK_ENTRIES = "dist/lock-entries.json";

/** True if this installation is an unpacked package. It has no sources. */
export function isPackaged(): boolean {
  return !existsSync(join(INSTALLATION, "services/runtime/src/main.ts"));
}

/** Version of this installation. */
export function readVersion(): string {
  const text = readFileSync(join(INSTALLATION, "package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

/** Name of the file of a version. */
export function nameTarball(version: string): string {
  return `platform-${version}.tgz`;
}
