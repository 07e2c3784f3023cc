// The built form of threads.
import { existsSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { nameThread } from "../services/runtime/src/build/thread-name.ts";

const SOURCE = /^(?:packages|services)\/[\w-]+\/src\/.+\.ts$/;

/**
 * Returns a function that finds the built form of a thread by the URL of its source, and leaves others as they are. `root` is
 * the path of a checkout whose programs are built; throws if they are not.
 */
export function createThreadFinder(root: string): (file: string | URL) => string | URL {
  const builds = join(root, "dist/services");
  const build = join(builds, readFileSync(join(builds, "current"), "utf8").trim());
  return (file) => {
    if (!(file instanceof URL) || file.protocol !== "file:") return file;
    const path = relative(root, fileURLToPath(file)).replaceAll(sep, "/");
    const built = join(build, `${nameThread(path)}.js`);
    return SOURCE.test(path) && existsSync(built) ? pathToFileURL(built) : file;
  };
}
