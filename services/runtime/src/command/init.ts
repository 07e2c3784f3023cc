// `platform init`: creates a project, or installs the platform into a clone of one.
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { nameProgram } from "@platform/kernel/config";
import { preparePackage } from "../package/packed.ts";
import { linkPackage, writeDependency } from "../package/project-dependency.ts";
import { isProject } from "../project/project.ts";
import { createProjectFiles, LAUNCHERS, type TemplateName } from "../project/templates/index.ts";

const NAME = /^[a-z][a-z0-9-]{0,62}$/;

/** Options of `platform init`. */
export interface InitOptions {
  readonly name: string;
  readonly template: TemplateName;
  /** True for the service language, false for plain TypeScript. */
  readonly isLanguage: boolean;
}

/** Creates a folder with a service and its tests, and prints the commands to type next. Resolves to the exit code. */
export async function runInit({ name, template, isLanguage }: InitOptions): Promise<number> {
  const folder = resolve(name);
  const place = relative(process.cwd(), folder);
  if (isProject(folder)) {
    writeFiles(folder, LAUNCHERS);
    const packed = await preparePackage(reportProgress);
    linkPackage(folder, packed.folder);
    printNext(`Installed the platform in ${place === "" ? "this project" : place}.`, folder);
    return 0;
  }
  const project = basename(folder);
  if (!NAME.test(project)) {
    throw new Error(
      `"${project}": expected a name of lower-case letters, digits and -, like notes`,
    );
  }
  mkdirSync(folder, { recursive: true });
  if (readdirSync(folder).length > 0) throw new Error(`${name} is not empty; choose another name`);
  const packed = await preparePackage(reportProgress);
  writeFiles(folder, createProjectFiles({ name: project, template, isLanguage }));
  writeDependency(folder, packed);
  linkPackage(folder, packed.folder);
  printNext(`Created ${place}.`, folder);
  return 0;
}

/** Lines of a packing, apart from the result. */
export function reportProgress(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Writes files that are missing. */
function writeFiles(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    const file = join(folder, path);
    if (existsSync(file)) continue;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text, { mode: path in LAUNCHERS ? 0o755 : 0o644 });
  }
}

function printNext(done: string, folder: string): void {
  const place = relative(process.cwd(), folder);
  const program = nameProgram("platform", { path: process.env["PATH"] ?? "", folder });
  const enter = place === "" ? "" : `  cd ${place}\n`;
  process.stdout.write(
    `${done}\n\n${enter}  ${program} run --watch\n  ${program} up    joins a platform that runs, or starts one\n`,
  );
}
