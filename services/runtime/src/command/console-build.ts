// Builds the console's page in a checkout, beside the running services.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";

/** Packages and images carry the built page instead. */
const BUILD = fileURLToPath(new URL("../../../../apps/console/build.ts", import.meta.url));
const TEXT_MAX = 2_000;

/** Options of {@link buildConsole}. */
export interface ConsoleBuildOptions {
  readonly lifecycle: Lifecycle;
  readonly logger: Logger;
  /** Program that builds unless the page is up to date; default: that of the checkout. */
  readonly program?: string;
}

/** Builds the page if its sources have changed since its last build. Ends with the platform; a failure is logged. */
export function buildConsole(options: ConsoleBuildOptions): void {
  const { lifecycle, logger, program = BUILD } = options;
  if (!existsSync(program)) return;
  const child = spawn(process.execPath, [program, "--if-stale"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  let text = "";
  child.stderr.setEncoding("utf8");
  child.stderr.on("data", (chunk: string) => (text = (text + chunk).slice(-TEXT_MAX)));
  const warn = (error: string): void =>
    logger.warn("the console's page could not be built", {
      error,
      remedy: "npm run build:console",
    });
  child.once("error", (error) => warn(error.message));
  child.once("close", (code) => {
    if (code !== 0 && !lifecycle.stopping.aborted) warn(text.trim());
  });
  lifecycle.onDrain("console build", () => {
    child.kill();
    return exited;
  });
}
