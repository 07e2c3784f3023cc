// Tasks with messages in the console of the platform.
import { after, before } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { Platform } from "../../../identity/platform.ts";
import { onPlatform, testTask } from "./hands.ts";
import { MESSAGING_TASKS } from "./messaging-tasks.ts";

let browser: Browser;
let platform: Platform;

before(async () => {
  if (chromiumSkip !== false) return;
  [platform, browser] = await Promise.all([Platform.start(), startChromium()]);
});

after(async () => {
  await browser?.close();
  await platform?.stop();
});

const open = onPlatform(
  () => browser,
  () => platform,
);
for (const task of MESSAGING_TASKS) testTask("platform", open, task);
