// Services, schedules and logs in Chromium: a service is stopped and started, and its lines appear as they are written.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { Platform } from "../../identity/platform.ts";
import { checkPage, goTo, LOOKS, openPlatform } from "./chromium.ts";

let platform: Platform;
let browser: Browser;

before(async () => {
  if (chromiumSkip !== false) return;
  [platform, browser] = await Promise.all([Platform.start(), startChromium()]);
});

after(async () => {
  await browser?.close();
  await platform?.stop();
});

for (const look of LOOKS) {
  test(
    `each page is accessible and within its window: ${look.name}`,
    { skip: chromiumSkip },
    async (t) => {
      const console = await openPlatform(t, browser, platform, look);
      for (const path of [
        "/",
        "/runtime/services",
        "/runtime/services?service=vault",
        "/runtime/schedules",
        "/runtime/logs",
        "/gateway/routes",
        "/identity/users",
        "/mail/inbox",
        "/tunnels",
        "/messaging/topics",
      ]) {
        await goTo(console, path);
        await checkPage(console, `${path} ${look.name}`);
      }
    },
  );
}

test(
  "commands have the ports on which this platform listens",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    const port = (name: string): number => platform.ports.get(name)!;
    await goTo(console, "/messaging/topics");
    await page.getByText(`kcat -P -b localhost:${port("pulse kafka")} -t orders`).waitFor();
  },
);

test(
  "a service is stopped, started and restarted in two clicks",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    await page.getByRole("navigation", { name: "Console" }).getByText("Runtime").click();
    const row = page.locator("main tr[data-row='notify']");
    const pid = platform.pids.get("notify")!;
    await row.getByRole("button", { name: "Stop…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
    await row.getByText("Stopped", { exact: true }).waitFor();
    assert.throws(() => process.kill(pid, 0), "the process is gone");
    await row.getByRole("button", { name: "Start" }).click();
    await row.getByText("Running", { exact: true }).waitFor();
    await row.getByRole("button", { name: "Restart" }).click();
    await row.getByText("Running", { exact: true }).waitFor();
  },
);

test(
  "lines appear as they are written, filtered by service and text",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    await goTo(console, "/runtime/logs");
    await page.getByLabel("Service", { exact: true }).selectOption("pulse");
    await page.getByRole("searchbox").fill("needle-");
    await page.getByText("No line matches").waitFor();
    const line = page.locator(".tail-row:visible").filter({ hasText: "needle-" });
    await page.evaluate(`fetch("/svc/pulse/api/v1/topics/needle-%3Cimg%20src=x%3E")`);
    await line.first().click();
    const pane = page.getByRole("complementary", { name: "Details" });
    await pane.getByText("needle-").first().waitFor();
    await checkPage(console, "log");
    await page.evaluate(`fetch("/svc/pulse/api/v1/topics/other")`);
    assert.equal(await page.locator(".tail-row:visible").filter({ hasText: "/other" }).count(), 0);
  },
);
