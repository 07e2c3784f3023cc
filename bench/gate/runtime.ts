// The two runtimes that ours is measured on.
import { fileURLToPath } from "node:url";

/** Node runs by default; Bun is asked for by PLATFORM_RUNTIME. */
export type RuntimeName = "node" | "bun";

/** The repository's folder. */
export const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

/** Where the runtime's binary is, whether or not it exists. */
export function findRuntime(runtime: RuntimeName): string {
  return runtime === "node"
    ? process.execPath
    : `${REPOSITORY}node_modules/@oven/bun-linux-x64/bin/bun`;
}
