// Builds parts of a checkout beside the running services: the console's page, the built form of the programs, and the package
// for projects.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";

/** Packages and images carry the built page instead. */
const CONSOLE = fileURLToPath(new URL("../../../../apps/console/build.ts", import.meta.url));
const SERVICES = fileURLToPath(new URL("../build/build-services.ts", import.meta.url));
const PACKAGE = fileURLToPath(new URL("../package/pack-checkout.ts", import.meta.url));
const TEXT_MAX = 2_000;

/** Options of {@link buildConsole}, {@link buildServices} and {@link buildPackage}. */
export interface BuildOptions {
  readonly lifecycle: Lifecycle;
  readonly logger: Logger;
  /** Program that builds; default: that of the checkout. */
  readonly program?: string;
}

/**
 * Builds the page if its sources have changed since its last build. Resolves when that has ended. Ends with the platform; a
 * failure is logged.
 */
export function buildConsole({ program = CONSOLE, ...options }: BuildOptions): Promise<void> {
  return runBuild({
    ...options,
    command: [program, "--if-stale"],
    failure: "the console's page could not be built",
    remedy: "npm run build:console",
  });
}

/** Builds the programs for later starts, as `buildConsole`. */
export function buildServices({ program = SERVICES, ...options }: BuildOptions): Promise<void> {
  return runBuild({
    ...options,
    command: [program, "--background"],
    failure: "the built form of the services could not be written; starts take longer",
    remedy: "npm run build:services",
  });
}

/** Packs the platform for projects, as `buildConsole`. */
export function buildPackage({ program = PACKAGE, ...options }: BuildOptions): Promise<void> {
  return runBuild({
    ...options,
    command: [program],
    failure: "the platform could not be packed for projects",
    remedy: "npm run pack:platform",
  });
}

interface RunOptions {
  readonly lifecycle: Lifecycle;
  readonly logger: Logger;
  /** Module and arguments. */
  readonly command: readonly [string, ...string[]];
  readonly failure: string;
  readonly remedy: string;
}

async function runBuild(options: RunOptions): Promise<void> {
  const { lifecycle, logger, command, failure, remedy } = options;
  if (!existsSync(command[0]) || lifecycle.stopping.aborted) return;
  const child = spawn(process.execPath, command, { stdio: ["ignore", "ignore", "pipe"] });
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  let text = "";
  child.stderr.setEncoding("utf8");
  child.stderr.on("data", (chunk: string) => (text = (text + chunk).slice(-TEXT_MAX)));
  const warn = (error: string): void => logger.warn(failure, { error, remedy });
  child.once("error", (error) => warn(error.message));
  child.once("close", (code) => {
    if (code !== 0 && !lifecycle.stopping.aborted) warn(text.trim());
  });
  lifecycle.onDrain("build", () => {
    child.kill();
    return exited;
  });
  await exited;
}
