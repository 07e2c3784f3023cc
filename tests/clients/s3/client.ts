// Interface of real S3 clients: version, exercise.
import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import type { StagedVault } from "@platform/testing/staged-vault";

const TIMEOUT_MS = 60_000;
const run = promisify(execFile);

/** A running store with a bucket for one client, and a folder for its files. */
export interface S3Scene {
  vault: StagedVault;
  /** Name of an empty bucket. */
  bucket: string;
  /** An empty folder for temporary files. */
  folder: string;
  /** A folder of files with various names, which must not be modified. */
  tree: string;
  /** Environment of child processes: only the credentials, with the names that clients use. */
  env: Readonly<Record<string, string>>;
}

/** A row of the table. */
export interface RealS3Client {
  name: string;
  /** Name of the package. */
  package: { registry: "Debian" | "npm"; name: string };
  /** Returns the version; undefined if not installed. */
  readVersion(): string | undefined;
  /** Returns the reason if it cannot work on this machine although it is installed. */
  findObstacle?(): string | undefined;
  /** Tested features, as a phrase for the table. */
  shows: string;
  /** Runs the exercise; throws if something is wrong. */
  exercise(scene: S3Scene): Promise<void>;
}

/** Runs a program and returns its output; throws with the output if it fails. */
export async function runProgram(
  scene: S3Scene,
  command: string,
  args: readonly string[],
  more: { env?: Readonly<Record<string, string>> } = {},
): Promise<string> {
  const env = { ...scene.env, ...more.env };
  const options = { env, cwd: scene.folder, timeout: TIMEOUT_MS, maxBuffer: 16 * 1024 * 1024 };
  try {
    return (await run(command, args, options)).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${command} ${args.join(" ")}: ${stdout ?? ""}${stderr ?? String(error)}`, {
      cause: error,
    });
  }
}

/** Returns the version output of a program; undefined if not installed. */
export function readVersionOf(
  command: string,
  args: readonly string[],
  pattern: RegExp,
): string | undefined {
  const result = spawnSync(command, args, { encoding: "utf8", timeout: TIMEOUT_MS });
  if (result.status !== 0) return undefined;
  return pattern
    .exec(result.stdout + result.stderr)
    ?.slice(1)
    .join(", ");
}

/** Throws unless both folders have the same files with the same bytes, except for the ignored names. */
export async function assertSameTree(
  scene: S3Scene,
  copy: string,
  leftOut: readonly string[] = [],
): Promise<void> {
  const excludes = leftOut.map((name) => `--exclude=${name}`);
  await runProgram(scene, "/usr/bin/diff", ["-r", ...excludes, scene.tree, copy]);
}
