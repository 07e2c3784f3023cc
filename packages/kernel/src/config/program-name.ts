// Programs as a user types them, for hints that can be copied.
import { existsSync, readFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const LOCAL = join("node_modules", ".bin");
const INSTALLED = new URL("../../../../bin/", import.meta.url);

/** Circumstances of {@link nameProgram}. */
interface Shell {
  /** Value of PATH. */
  path: string;
  /** Working directory. */
  folder: string;
}

/**
 * Returns the command that starts a program of the platform in the working directory: its name if it is in the PATH,
 * `npx NAME` if the folder belongs to this repository or to a project that has it, otherwise `node` with its file.
 */
export function nameProgram(
  program: string,
  { path, folder }: Shell = { path: process.env["PATH"] ?? "", folder: process.cwd() },
): string {
  // The PATH of npm and npx is not that of the user's shell.
  const folders = path.split(delimiter).filter((one) => one !== "" && !one.endsWith(LOCAL));
  if (folders.some((one) => existsSync(join(one, program)))) return program;
  for (let at = folder; ; at = dirname(at)) {
    if (existsSync(join(at, LOCAL, program)) || ownsProgram(at, program)) return `npx ${program}`;
    if (dirname(at) === at) break;
  }
  const file = new URL(`${program}.js`, INSTALLED);
  // An executable of a project is far from the installation.
  return existsSync(file) ? `node ${quoteShell(fileURLToPath(file))}` : program;
}

/** Quotes a word for a POSIX shell if that is necessary. */
export function quoteShell(word: string): string {
  return /^[\w./@%+=:,-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

// npx also starts programs of the package in which it is called.
function ownsProgram(folder: string, program: string): boolean {
  try {
    const { bin } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
      bin?: unknown;
    };
    return typeof bin === "object" && bin !== null && Object.hasOwn(bin, program);
  } catch {
    return false;
  }
}
