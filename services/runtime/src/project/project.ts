// The project in a folder: a service file and a package.json, as `platform init` writes them.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** File of a project's service. */
export const MAIN_FILE = "main.service.ts";

const NAME = /^[a-z][a-z0-9-]{0,39}$/;

/** A project. */
export interface Project {
  /** Name of package.json without its scope. */
  readonly name: string;
  /** Absolute path of the service file. */
  readonly file: string;
}

/** True for a folder with the files that `platform init` writes. */
export function isProject(folder: string): boolean {
  return [MAIN_FILE, "package.json"].every((name) => existsSync(join(folder, name)));
}

/**
 * The project in a folder; undefined if the folder has no service file or no package.json. Throws if its name is
 * invalid, or one of `taken`, the names of the platform's services.
 */
export function findProject(folder: string, taken: readonly string[]): Project | undefined {
  if (!isProject(folder)) return undefined;
  const file = join(folder, MAIN_FILE);
  const path = join(folder, "package.json");
  const { name } = JSON.parse(readFileSync(path, "utf8")) as { name?: unknown };
  const short = typeof name === "string" ? name.replace(/^@[^/]*\//, "") : "";
  if (!NAME.test(short)) {
    throw new Error(
      `${path}: the name of a project has 1 to 40 lower-case letters, digits or -, beginning with a letter, not ${JSON.stringify(name)}`,
    );
  }
  if (taken.includes(short)) {
    throw new Error(
      `${path}: ${short} is the name of a service of the platform; choose another name`,
    );
  }
  return { name: short, file };
}
