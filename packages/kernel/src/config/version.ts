// The version of a package, read from its package.json.
import { existsSync, readFileSync } from "node:fs";

/**
 * Returns `version` of the nearest package.json in or above the folder of a module.
 *
 * ```ts
 * const VERSION = readPackageVersion(import.meta.url);
 * ```
 */
export function readPackageVersion(moduleUrl: string): string {
  for (let url = new URL("package.json", moduleUrl); ;) {
    if (existsSync(url)) {
      const { version } = JSON.parse(readFileSync(url, "utf8")) as { version: string };
      return version;
    }
    const above = new URL("../package.json", url);
    if (above.href === url.href) throw new Error(`no package.json above ${moduleUrl}`);
    url = above;
  }
}
