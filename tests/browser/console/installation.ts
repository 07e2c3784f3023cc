// The platform and the browser that tests of several modules share: each platform takes seconds of processor time to start.
import type { Browser } from "playwright-core";
import { startChromium } from "@platform/kernel/testing";
import { Platform } from "../../identity/platform.ts";

/** Both, from the first `before` of a file to its end. */
export interface Installation {
  platform: Platform;
  browser: Browser;
}

let installation: Promise<Installation> | undefined;

/** Resolves with the installation of this file. The first call starts it, with its options. */
export function joinInstallation(
  options: Parameters<typeof Platform.start>[0] = {},
): Promise<Installation> {
  installation ??= start(options);
  return installation;
}

/** Ends it, in an `after` that follows those of all modules. */
export async function endInstallation(): Promise<void> {
  if (installation === undefined) return;
  const { platform, browser } = await installation;
  await browser.close();
  await platform.stop();
}

async function start(options: Parameters<typeof Platform.start>[0]): Promise<Installation> {
  const [platform, browser] = await Promise.all([Platform.start(options), startChromium()]);
  return { platform, browser };
}
