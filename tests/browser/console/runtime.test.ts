// Services, schedules and logs in Chromium: a service is stopped and started, and its lines appear as they are written.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { Platform } from "../../identity/platform.ts";
import {
  checkPage,
  goTo,
  keepSignIn,
  LOOKS,
  openPlatform,
  PATIENCE_MS,
  takePicture,
} from "./chromium.ts";

const POLL_MS = 100;
/** A slow mobile network. */
const SLOW = {
  offline: false,
  latency: 400,
  downloadThroughput: 50_000,
  uploadThroughput: 50_000,
};

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
    await page.getByText(`kcat -P -b localhost:${port("pulse kafka")} -t orders -X`).waitFor();
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

/** Starts, stops or restarts a service as an administrator elsewhere does; repeats it until the platform can. */
async function operate(id: string, operation: "start" | "stop" | "restart"): Promise<void> {
  const url = `${platform.runtime.origin}/api/v1/services/${id}/${operation}`;
  const headers = {
    authorization: `Bearer ${platform.admin}`,
    "content-type": "application/json",
  };
  const endsMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const { status } = await fetch(url, { method: "POST", headers });
    if (status < 300) return;
    assert.ok(status === 409 && performance.now() < endsMs, `${operation} ${id}: ${status}`);
    await sleep(POLL_MS);
  }
}

async function publish(n: number): Promise<void> {
  const message = { topic: "losses", payload: `{"n":${n}}` };
  const token = "PLATFORM_PULSE_TOKEN";
  const endsMs = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      await platform.callService(platform.pulse, token, "/publish", message);
      return;
    } catch (error) {
      if (performance.now() > endsMs) throw error;
      await sleep(POLL_MS);
    }
  }
}

test(
  "a tail says since when messaging is down, and continues without a gap or a row twice",
  { skip: chromiumSkip },
  async (t) => {
    await publish(1);
    await publish(2);
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    await goTo(console, "/messaging/topics/losses/tail?tenant=");
    const rows = page.locator(".tail-row:visible .tail-payload");
    await rows.filter({ hasText: '"n":2' }).waitFor();
    const filter = page.getByRole("searchbox");
    await filter.fill('"n"');
    const reports = page.getByRole("status");
    await operate("pulse", "stop");
    await reports.filter({ hasText: /No answer from Messaging since \d\d:\d\d:\d\d/ }).waitFor();
    await checkPage(console, "messaging is down");
    await takePicture(console, "tail-down");
    // A list that was never loaded says so instead of being empty, and is loaded as soon as it can be.
    const other = await page.context().newPage();
    await other.goto(`${platform.console.origin}/ui/messaging/topics`);
    await other.getByText(/Since \d\d:\d\d:\d\d; retried automatically/).waitFor();
    await operate("pulse", "start");
    await publish(3);
    await rows.filter({ hasText: '"n":3' }).waitFor();
    await reports.filter({ hasText: "No answer" }).waitFor({ state: "detached" });
    assert.deepEqual(await rows.allTextContents(), ['{"n":1}', '{"n":2}', '{"n":3}']);
    assert.equal(await filter.inputValue(), '"n"');
    await other.getByRole("row").filter({ hasText: "losses" }).waitFor();
    await other.close();
  },
);

test(
  "after a restart of the console a page signs in again; typed text stays until the user has",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    await goTo(console, "/runtime/logs?service=pulse&q=haystack");
    await page.getByText("No line matches").waitFor();
    const form = await page.context().newPage();
    await form.goto(`${platform.console.origin}/ui/identity/users`);
    await form.getByRole("button", { name: "New user" }).click();
    const username = form.getByRole("dialog").getByLabel("Username");
    await username.fill("dave");
    await operate("gate", "restart");
    await page.waitForEvent("framenavigated");
    await page.getByText("No line matches").waitFor();
    assert.match(page.url(), /\/ui\/runtime\/logs\?service=pulse&q=haystack$/);
    await page.getByText("live", { exact: true }).first().waitFor();
    // That tab has the session now, and this one finds it; otherwise its dialog leads to identity.
    await form.getByText("The console has lost the session").waitFor({ state: "detached" });
    assert.equal(await username.inputValue(), "dave");
    await form.getByText("live", { exact: true }).first().waitFor();
    await form.close();
    await keepSignIn(console, platform);
  },
);

test(
  "on a slow network the frame comes first, and nothing jumps",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    const network = await page.context().newCDPSession(page);
    t.after(() => network.detach());
    await network.send("Network.enable");
    await network.send("Network.setCacheDisabled", { cacheDisabled: true });
    await network.send("Network.emulateNetworkConditions", SLOW);
    await page.addInitScript(`globalThis.moved = 0;
    new PerformanceObserver((list) => {
      for (const { value } of list.getEntries()) globalThis.moved += value;
    }).observe({ type: "layout-shift", buffered: true });`);
    await page.goto(`${platform.console.origin}/ui/runtime/services`, { waitUntil: "commit" });
    await page.locator("main .loading").first().waitFor();
    assert.equal(await page.locator("nav.rail").count(), 1, "the frame is there");
    await page.locator("main tr[data-row='vault']").waitFor();
    assert.ok(Number(await page.evaluate("moved")) < 0.01, "layout shift");
  },
);
