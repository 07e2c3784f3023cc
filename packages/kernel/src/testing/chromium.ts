// Debian's Chromium without a window for tests of pages: the program with one takes twice the CPU time also when none is shown.
import { existsSync, statfsSync } from "node:fs";
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
  // Pages of a test share a process and paint little: processes and threads of their own are a fifth of the time of a page
  // that is loaded once.
  "--renderer-process-limit=1",
  "--num-raster-threads=1",
  "--disable-lcd-text",
];
// To optimize the scripts of a page that is used for seconds takes longer than to run them. The fast compiler pays: the check
// of accessibility runs many times in a page.
const UNOPTIMIZED = "--js-flags=--no-opt";
// Memory that processes share is a file of a disk with Playwright's own flags, for containers with little of it.
const SHARED_MEMORY = "/dev/shm";
const SHARED_BYTES_MIN = 2 ** 30;
const FROM_DISK = "--disable-dev-shm-usage";
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
    ignoreDefaultArgs: hasSharedMemory() ? [FROM_DISK] : [],
    timeout: START_MS,
    // Names of saved files follow the locale's encoding.
    env: { ...process.env, LANG: "C.UTF-8", LC_ALL: "C.UTF-8" },
  });
}

function hasSharedMemory(): boolean {
  if (!existsSync(SHARED_MEMORY)) return false;
  const { bavail, bsize } = statfsSync(SHARED_MEMORY);
  return bavail * bsize >= SHARED_BYTES_MIN;
}
