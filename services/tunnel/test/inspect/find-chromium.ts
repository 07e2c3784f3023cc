// Finds Chromium for the tests of the page.
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** Path of Chromium; a path that is usual if it must run; undefined if it is not installed. */
export function findChromium(): string | undefined {
  for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
    const path = join(folder, "chromium");
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not in this folder.
    }
  }
  return process.env["PLATFORM_TEST_PEERS"] === "required" ? "/usr/bin/chromium" : undefined;
}
