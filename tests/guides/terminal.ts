// A terminal in which the commands of the guide are typed.
import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { findProgram } from "../stage/program.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

/** Options of {@link typeCommands}. */
export interface Terminal {
  folder: string;
  /** Ports of the guide, and those in their place. */
  ports: readonly (readonly [fixed: string, actual: string])[];
}

/** False if all of these programs are installed or required, otherwise the reason to skip a test. */
export function skipWithout(programs: readonly string[]): string | false {
  const missing = programs.find((name) => findProgram(name) === undefined);
  if (missing === undefined || process.env["PLATFORM_TEST_PEERS"] === "required") return false;
  return `${missing} is not installed`;
}

/** The commands with the ports and programs of this test in place of those of the guide. */
export function adapt(commands: string, { ports }: Pick<Terminal, "ports">): string {
  const node = `"${process.execPath}"`;
  return ports
    .reduce(
      (text, [fixed, actual]) =>
        text.replaceAll(
          new RegExp(`\\b(localhost|127\\.0\\.0\\.1):${fixed}\\b`, "g"),
          `$1:${actual}`,
        ),
      commands,
    )
    .replaceAll("./platform", `${node} "${join(REPOSITORY, "bin/platform.js")}"`)
    .replaceAll(/\bnode bin\//g, `${node} "${join(REPOSITORY, "bin")}"/`);
}

/** Types commands in a shell that ends at the first error. Resolves with their output. */
export async function typeCommands(commands: string, terminal: Terminal): Promise<string> {
  const script = adapt(commands, terminal);
  const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", script], {
    cwd: terminal.folder,
    env: { ...process.env, PATH: `${dirname(process.execPath)}:${process.env["PATH"]}` },
  });
  return stdout;
}
