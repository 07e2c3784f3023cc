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
/** Longer than a busy machine needs. */
const START_MS = 120_000;

/** Why tests in Chromium are skipped; `false` if it is installed, or `PLATFORM_TEST_PEERS=required` demands it. */
export const chromiumSkip: string | false =
  existsSync(PROGRAM) || process.env["PLATFORM_TEST_PEERS"] === "required"
    ? false
    : "chromium-headless-shell is not installed: tools/install-peers browser";

/** Starts Chromium without a window. Rejects if it is not installed. */
export async function startChromium(): Promise<Browser> {
  // Most users of this module need no browser.
  const { chromium } = await import("playwright-core");
  return chromium.launch({
    executablePath: PROGRAM,
    args: FLAGS,
    timeout: START_MS,
    // Names of saved files follow the locale's encoding.
    env: { ...process.env, LANG: "C.UTF-8", LC_ALL: "C.UTF-8" },
  });
}
