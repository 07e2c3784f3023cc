// Programs as a user types them, for hints that can be copied.
import { existsSync, readFileSync } from "node:fs";
import { delimiter, dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const LOCAL = join("node_modules", ".bin");
const NODE = ["node", "node.exe"];
const INSTALLED = new URL("../../../../bin/", import.meta.url);

/** Circumstances of {@link nameProgram}. */
interface Shell {
  /** Value of PATH. */
  path: string;
  /** Working directory. */
  folder: string;
}

/**
 * Returns the command that starts a program of the platform in the working directory, and that never asks a registry: its
 * name if it is in the PATH, `./NAME` for a script of this clone or of the project, the file that npm has installed, or
 * `node` with the program's file; without `node` in the PATH, the script of the installation.
 */
export function nameProgram(
  program: string,
  { path, folder }: Shell = { path: process.env["PATH"] ?? "", folder: process.cwd() },
): string {
  // The PATH of npm and npx is not that of the user's shell.
  const folders = path.split(delimiter).filter((one) => one !== "" && !one.endsWith(LOCAL));
  if (folders.some((one) => existsSync(join(one, program)))) return program;
  for (let at = folder; ; at = dirname(at)) {
    const command = findCommand(at, program, folder);
    if (command !== undefined) return command;
    if (dirname(at) === at) break;
  }
  const file = new URL(`${program}.js`, INSTALLED);
  // An executable of a project is far from the installation.
  if (!existsSync(file)) return program;
  const script = new URL(`../${program}`, INSTALLED);
  const hasNode = folders.some((one) => NODE.some((name) => existsSync(join(one, name))));
  if (!hasNode && existsSync(script)) return quoteShell(fileURLToPath(script));
  return `node ${quoteShell(fileURLToPath(file))}`;
}

/** The command that starts what the folder `at` has, typed in `from`. */
function findCommand(at: string, program: string, from: string): string | undefined {
  const installed = join(at, LOCAL, program);
  const own = findOwnFile(at, program);
  const isInstalled = existsSync(installed);
  if (own === undefined && !isInstalled) return undefined;
  // A file of the same name beside neither of them is something else.
  if (existsSync(join(at, program))) return quoteShell(showPath(from, join(at, program)));
  if (isInstalled) return quoteShell(showPath(from, installed));
  return `node ${quoteShell(relative(from, join(at, own!)))}`;
}

/** The path as shells accept it for a program: with a slash. */
function showPath(from: string, to: string): string {
  const path = relative(from, to).replaceAll(sep, "/");
  return path.includes("/") ? path : `./${path}`;
}

/** Quotes a word for a POSIX shell if that is necessary. */
export function quoteShell(word: string): string {
  return /^[\w./@%+=:,-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** The file of a program of the package in a folder. */
function findOwnFile(folder: string, program: string): string | undefined {
  try {
    const { bin } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
      bin?: unknown;
    };
    if (typeof bin !== "object" || bin === null || !Object.hasOwn(bin, program)) return undefined;
    const file = (bin as Record<string, unknown>)[program];
    return typeof file === "string" ? file : undefined;
  } catch {
    return undefined;
  }
}
