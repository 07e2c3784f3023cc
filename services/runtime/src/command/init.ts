// `platform init`: creates a project.
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { nameProgram } from "@platform/kernel/config";
import { TEMPLATES, type TemplateName } from "../project/templates/index.ts";

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
  const project = folder.slice(folder.lastIndexOf("/") + 1);
  if (!NAME.test(project)) {
    throw new Error(
      `"${project}": expected a name of lower-case letters, digits and -, like notes`,
    );
  }
  mkdirSync(folder, { recursive: true });
  if (readdirSync(folder).length > 0) throw new Error(`${name} is not empty; choose another name`);
  for (const [path, text] of Object.entries(TEMPLATES[template](project))) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  linkPackage(folder);
  const place = relative(process.cwd(), folder);
  const program = nameProgram("platform", { path: process.env["PATH"] ?? "", folder });
  process.stdout.write(`Created ${place}.\n\n  cd ${place}\n  ${program} run --watch\n`);
  return 0;
}

/** Links the package of this installation, for editors, and its command line, for `npx` and npm's scripts. */
function linkPackage(folder: string): void {
  const scope = join(folder, "node_modules/@platform");
  mkdirSync(scope, { recursive: true });
  const main = fileURLToPath(import.meta.resolve("@platform/service"));
  symlinkSync(resolve(dirname(main), ".."), join(scope, "service"), "dir");
  const programs = join(folder, "node_modules/.bin");
  mkdirSync(programs, { recursive: true });
  symlinkSync(fileURLToPath(PROGRAM), join(programs, "platform"));
}
