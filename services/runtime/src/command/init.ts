// `platform init`: creates a project, or installs the platform into a clone of one.
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { nameProgram } from "@platform/kernel/config";
import { isProject } from "../project/project.ts";
import { LAUNCHERS, TEMPLATES, type TemplateName } from "../project/templates/index.ts";

const PROGRAM = new URL("../../../../bin/platform.js", import.meta.url);
const NAME = /^[a-z][a-z0-9-]{0,62}$/;

/** Options of `platform init`. */
export interface InitOptions {
  readonly name: string;
  readonly template: TemplateName;
}

/** Creates a folder with a service and its tests, and prints the commands to type next. */
export function runInit({ name, template }: InitOptions): number {
  const folder = resolve(name);
  const place = relative(process.cwd(), folder);
  if (isProject(folder)) {
    writeFiles(folder, LAUNCHERS);
    linkPackage(folder);
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
  writeFiles(folder, TEMPLATES[template](project));
  linkPackage(folder);
  printNext(`Created ${place}.`, folder);
  return 0;
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
  process.stdout.write(`${done}\n\n${enter}  ${program} run --watch\n`);
}

/** Links the package of this installation, for editors, and its command line, for the project's script and npm's. */
function linkPackage(folder: string): void {
  const main = fileURLToPath(import.meta.resolve("@platform/service"));
  link(resolve(dirname(main), ".."), join(folder, "node_modules/@platform/service"), "dir");
  link(fileURLToPath(PROGRAM), join(folder, "node_modules/.bin/platform"), "file");
}

/** Links to `target`; a link of another installation is replaced, anything else is left. */
function link(target: string, path: string, type: "dir" | "file"): void {
  mkdirSync(dirname(path), { recursive: true });
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isSymbolicLink()) return;
  rmSync(path, { force: true });
  symlinkSync(target, path, type);
}
