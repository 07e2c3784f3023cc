// Tasks with messages in the console of the platform.
import { before } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import type { Platform } from "../../../identity/platform.ts";
import { onPlatform, testTask } from "./hands.ts";
import { MESSAGING_TASKS } from "./messaging-tasks.ts";
import { joinInstallation } from "../installation.ts";

let browser: Browser;
let platform: Platform;

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation());
});

const open = onPlatform(
  () => browser,
  () => platform,
);
for (const task of MESSAGING_TASKS) testTask("platform", open, task);
