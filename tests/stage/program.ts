// Installed programs: paths, versions, execution.
import { execFile, spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const COMMAND_TIMEOUT_MS = 30_000;
const OUTPUT_BYTES_MAX = 16 * 2 ** 20;

/** Returns the full path of a program in PATH or the sbin folders; undefined if not installed. */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  for (const folder of folders) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      continue;
    }
  }
  return undefined;
}

/** Returns the first version number that a program prints; undefined if not installed. */
export function readProgramVersion(name: string, args: readonly string[]): string | undefined {
  const path = findProgram(name);
  return path === undefined ? undefined : askVersion(path, args);
}

/** Returns the first version number that a program (a path, or a name in PATH) prints; "unknown" if it prints none. */
export function askVersion(path: string, args: readonly string[]): string {
  const run = spawnSync(path, args, { encoding: "utf8", timeout: COMMAND_TIMEOUT_MS });
  return /\d+\.\d+(?:\.\d+)*/.exec(`${run.stdout}${run.stderr}`)?.[0] ?? "unknown";
}

/** Runs a program and returns its stdout; rejects on a non-zero exit code. */
export async function runProgram(
  name: string,
  args: readonly string[],
  timeoutMs = COMMAND_TIMEOUT_MS,
): Promise<string> {
  const { stdout } = await promisify(execFile)(findProgram(name) ?? name, args, {
    timeout: timeoutMs,
    maxBuffer: OUTPUT_BYTES_MAX,
  });
  return stdout;
}
