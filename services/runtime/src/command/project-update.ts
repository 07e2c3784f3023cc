// `platform project update`: replaces the platform's package in a project.
import { existsSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { preparePackage } from "../package/packed.ts";
import { linkPackage, readDependency, writeDependency } from "../package/project-dependency.ts";
import { isProject, MAIN_FILE } from "../project/project.ts";
import { LAUNCHERS } from "../project/templates/index.ts";
import { reportProgress } from "./init.ts";

/**
 * Puts the package of this installation into the project in the working directory, in place of the one that it has, and adds
 * the scripts that start it. Resolves to the exit code.
 */
export async function runProjectUpdate(): Promise<number> {
  const folder = process.cwd();
  if (!isProject(folder)) {
    throw new Error(`${folder} is no project: it has no ${MAIN_FILE} or no package.json`);
  }
  const former = readDependency(folder);
  const packed = await preparePackage(reportProgress);
  writeDependency(folder, packed);
  for (const [name, text] of Object.entries(LAUNCHERS)) {
    if (!existsSync(join(folder, name))) writeFileSync(join(folder, name), text, { mode: 0o755 });
  }
  linkPackage(folder, packed.folder);
  const from = former === undefined ? "" : ` from ${basename(former)}`;
  process.stdout.write(
    `Updated the platform${from} to ${basename(packed.tarball)}: commit vendor, package.json and package-lock.json.\n\n  npm ci\n`,
  );
  return 0;
}
