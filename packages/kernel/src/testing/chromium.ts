// Debian's Chromium without a window for tests of pages: the program with one takes twice the CPU time also when none is shown.
import { existsSync } from "node:fs";
import type { Browser } from "playwright-core";

const PROGRAM = "/usr/bin/chromium-headless-shell";
// No look-ups of its own: a test must neither depend on the network nor wait for it.
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
// A page is closed after seconds: to optimize its scripts takes longer than to run them. About a third of a test's processor
// time.
const UNOPTIMIZED = "--js-flags=--no-opt --no-maglev";
/** Longer than a busy machine needs. */
const START_MS = 120_000;

/** Why tests in Chromium are skipped; `false` if it is installed, or `PLATFORM_TEST_PEERS=required` demands it. */
export const chromiumSkip: string | false =
  existsSync(PROGRAM) || process.env["PLATFORM_TEST_PEERS"] === "required"
    ? false
    : "chromium-headless-shell is not installed: tools/install-peers browser";

/**
 * Starts Chromium without a window. Rejects if it is not installed. Scripts are optimized for measurements, and for pages that
 * compute, as for the checksums of large files.
 */
export async function startChromium(
  scripts: "interpreted" | "optimized" = "interpreted",
): Promise<Browser> {
  // Most users of this module need no browser.
  const { chromium } = await import("playwright-core");
  return chromium.launch({
    executablePath: PROGRAM,
    args: scripts === "interpreted" ? [...FLAGS, UNOPTIMIZED] : FLAGS,
    timeout: START_MS,
    // Names of saved files follow the locale's encoding.
    env: { ...process.env, LANG: "C.UTF-8", LC_ALL: "C.UTF-8" },
  });
}
