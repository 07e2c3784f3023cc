// What a real S3 client is to these tests: found or not, of a version, put to work.
import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import type { StagedVault } from "../../../services/vault/test/serving/staged-vault.ts";

const TIMEOUT_MS = 60_000;
const run = promisify(execFile);

/** A running store with a bucket that only this client uses, and a folder for its files. */
export interface S3Scene {
  vault: StagedVault;
  /** The name of an empty bucket. */
  bucket: string;
  /** Scratch space; empty. */
  folder: string;
  /** A folder of files with names of all kinds, which must stay as it is. */
  tree: string;
  /** The environment of child processes: the credentials under the names that clients look for, and nothing of ours. */
  env: Readonly<Record<string, string>>;
}

/** One row of the table. */
export interface RealS3Client {
  name: string;
  /** The package that brings it. */
  package: { registry: "Debian" | "npm"; name: string };
  /** Its version; undefined if it is not installed. */
  readVersion(): string | undefined;
  /** Why it cannot work on this machine although it is installed. */
  findObstacle?(): string | undefined;
  /** What the exercise shows, as a phrase for the table. */
  shows: string;
  /** Puts it to work; throws where something is not as it should be. */
  exercise(scene: S3Scene): Promise<void>;
}

/** Runs a program to its end; throws with what it wrote where it fails. Resolves to its output. */
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

/** What a program writes when it is asked for its version; undefined if it is not there. */
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

/** Throws unless both folders hold the same files with the same bytes, but for the names left out. */
export async function assertSameTree(
  scene: S3Scene,
  copy: string,
  leftOut: readonly string[] = [],
): Promise<void> {
  const excludes = leftOut.map((name) => `--exclude=${name}`);
  await runProgram(scene, "/usr/bin/diff", ["-r", ...excludes, scene.tree, copy]);
}
