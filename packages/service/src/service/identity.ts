// Name and version of a service.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** Name and version, for logs, metrics and documentation. */
export interface Identity {
  readonly name: string;
  readonly version: string;
}

/** Name and version of the nearest package.json above a folder. */
export function readIdentity(folder: string): Identity {
  for (let at = resolve(folder); ; at = dirname(at)) {
    const path = join(at, "package.json");
    if (existsSync(path)) {
      const { name = "service", version = "0.0.0" } = JSON.parse(readFileSync(path, "utf8")) as {
        name?: string;
        version?: string;
      };
      return { name: name.replace(/^@[^/]*\//, ""), version };
    }
    if (at === dirname(at)) return { name: "service", version: "0.0.0" };
  }
}
