// What a real client or server is to these tests: found or not, of a version, put to work.
import { execFile, spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import type { RouteDocument, Stage, StagedGateway } from "../stage/stage.ts";

const COMMAND_TIMEOUT_MS = 30_000;
const OUTPUT_BYTES_MAX = 16 * 2 ** 20;

/** A gateway with `upstream-server.ts` behind `/`, and a stage to start more on. */
export interface Scene {
  stage: Stage;
  gateway: StagedGateway;
  /** Puts a route in through the API. */
  addRoute: (route: RouteDocument) => Promise<void>;
}

/** One entry of the table. */
export interface RealClient {
  name: string;
  /** Where it stands: clients are in front of the gateway, servers behind it. */
  side: "in front" | "behind";
  /** The Debian package that brings it; absent for what npm brings. */
  debianPackage?: string;
  /** Its version; undefined if it is not installed. */
  readVersion(): string | undefined;
  /** What the exercise shows, as a phrase for the table. */
  shows: string;
  /** Puts it to work; throws where something is not as it should be. */
  exercise(scene: Scene): Promise<void>;
}

/** The full path of a program in PATH or the sbin folders; undefined if absent. */
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

/** The first version number that a program prints; undefined if it is not installed. */
export function readProgramVersion(name: string, args: readonly string[]): string | undefined {
  const path = findProgram(name);
  if (path === undefined) return undefined;
  const run = spawnSync(path, args, { encoding: "utf8", timeout: COMMAND_TIMEOUT_MS });
  return /\d+\.\d+(?:\.\d+)*/.exec(`${run.stdout}${run.stderr}`)?.[0] ?? "unknown";
}

/** Runs a program to its end and returns its stdout; rejects on a non-zero exit code. */
export async function runProgram(name: string, args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(findProgram(name) ?? name, args, {
    timeout: COMMAND_TIMEOUT_MS,
    maxBuffer: OUTPUT_BYTES_MAX,
  });
  return stdout;
}
