// Tasks with messages in the console of messaging alone.
import { after, before } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import {
  startPulseProcess,
  type PulseProcess,
} from "../../../../services/pulse/test/fixture/pulse-process.ts";
import { alone, testTask } from "./hands.ts";
import { MESSAGING_TASKS } from "./messaging-tasks.ts";

const TOKEN = "operator-token";

let browser: Browser;
let pulse: PulseProcess;
const ends: (() => unknown)[] = [];

before(async () => {
  if (chromiumSkip !== false) return;
  browser = await startChromium();
  const stage = { after: (end: () => unknown) => void ends.push(end) };
  pulse = await startPulseProcess(stage, { PLATFORM_PULSE_TOKEN: TOKEN });
});

after(async () => {
  await browser?.close();
  for (const end of ends.reverse()) await end();
});

const open = alone(
  () => browser,
  () => ({ url: pulse.url, token: TOKEN }),
);
for (const task of MESSAGING_TASKS) testTask("alone", open, task);
