// The two measured runtimes.
import { fileURLToPath } from "node:url";

/** Node is the default; PLATFORM_RUNTIME selects Bun. */
export type RuntimeName = "node" | "bun";

/** The repository's folder. */
export const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

/** Path of the runtime's binary, which may not exist. */
export function findRuntime(runtime: RuntimeName): string {
  return runtime === "node"
    ? process.execPath
    : `${REPOSITORY}node_modules/@oven/bun-linux-x64/bin/bun`;
}
