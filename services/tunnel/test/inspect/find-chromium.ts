// Finds Chromium for tests in a browser.
import { findProgram } from "../fixture/find-program.ts";

/** Path of Chromium; a name that fails if it must run; undefined if it is not installed. */
export function findChromium(): string | undefined {
  return findProgram("chromium");
}
