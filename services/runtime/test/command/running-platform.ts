// A platform with all services that tests of several modules share: each takes seconds of processor time to start.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  anyPort,
  findStarted,
  makeFolder,
  parseEnv,
  run,
  type Started,
} from "@platform/testing/platform-process";

/** A running platform. */
interface RunningPlatform {
  up: ReturnType<typeof run>;
  started: Started;
  data: string;
}

let running: Promise<RunningPlatform> | undefined;

/** Resolves with the platform. The first call starts it. */
export function joinPlatform(): Promise<RunningPlatform> {
  running ??= startPlatform([]);
  return running;
}

/** Stops it, in an `after` that follows those of all modules; it must end gracefully. */
export async function endPlatform(): Promise<void> {
  if (running !== undefined) await stopPlatform(await running);
}

/** Starts another one with these flags and variables. */
export async function startPlatform(
  flags: readonly string[],
  env: Record<string, string> = {},
): Promise<RunningPlatform> {
  // A path that a shell must quote.
  const data = join(makeFolder(), "my data");
  const up = run(["up", "--json", "--data", data, ...flags, ...anyPort], env);
  return { up, started: await up.waitFor(findStarted), data };
}

/** Stops a platform, which must end gracefully. */
export async function stopPlatform({ up }: RunningPlatform): Promise<void> {
  up.child.kill("SIGTERM");
  assert.equal(await up.exit, 0, up.output().out);
}

/** The credentials that a platform has generated. */
export function readCredentials({ data }: RunningPlatform): Record<string, string> {
  return parseEnv(readFileSync(join(data, "credentials.env"), "utf8"));
}
