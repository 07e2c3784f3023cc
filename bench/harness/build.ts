// Lists the builds of our services that a run measures: this checkout on Node and on Bun, and an earlier one if requested.
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Node is the default; PLATFORM_RUNTIME selects Bun. */
export type RuntimeName = "node" | "bun";

/** The repository's folder. */
export const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

/** A checkout of this repository with its installed packages, on one runtime. */
export interface Build {
  /** As rows show it in brackets, such as `node` or `before, node`. */
  label: string;
  runtime: RuntimeName;
  folder: string;
}

/** This checkout on the default runtime. */
export const OURS_ON_NODE: Build = { label: "node", runtime: "node", folder: REPOSITORY };

/** Lists the builds to measure: this checkout on each runtime, followed by the one in `before`, if there is one. */
export function listBuilds(runtimes: readonly RuntimeName[], before?: string): Build[] {
  const ours = runtimes.map((runtime) => ({ label: runtime, runtime, folder: REPOSITORY }));
  if (before === undefined) return ours;
  return ours.flatMap((build) => [
    build,
    { ...build, label: `before, ${build.runtime}`, folder: before },
  ]);
}

/** Path of a command's file in a build. */
export function findBin(build: Build, name: string): string {
  return join(build.folder, "bin", `${name}.js`);
}

/** Path of the runtime's binary, which may not exist. */
export function findRuntime(runtime: RuntimeName): string {
  return runtime === "node"
    ? process.execPath
    : join(REPOSITORY, "node_modules/@oven/bun-linux-x64/bin/bun");
}
