// Background work of storage in Chromium: a check of all files is started, followed and cancelled.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { Platform } from "../../identity/platform.ts";
import { checkPage, goTo, LOOKS, openPlatform, takePicture } from "./chromium.ts";

const MIB = 1024 * 1024;
/** At 16 MiB/s a check takes long enough to be cancelled, but nobody waits for it. */
const OBJECTS = 8;

let platform: Platform;
let browser: Browser;

before(async () => {
  if (chromiumSkip !== false) return;
  [platform, browser] = await Promise.all([Platform.start(), startChromium()]);
  await platform.storage("PUT", "/large");
  for (let n = 0; n < OBJECTS; n += 1)
    await platform.storage("PUT", `/large/${n}`, "x".repeat(32 * MIB));
});

after(async () => {
  await browser?.close();
  await platform?.stop();
});

test("a job is started, followed and cancelled", { skip: chromiumSkip }, async (t) => {
  const console = await openPlatform(t, browser, platform, LOOKS[0], "/storage/buckets");
  const { page } = console;
  const rail = page.getByRole("navigation", { name: "Console" });
  await rail.getByRole("link", { name: "Jobs", exact: true }).click();
  const lifecycle = page.locator("main tr[data-row='lifecycle']");
  await lifecycle.getByText("not yet").waitFor();
  await lifecycle.getByRole("button", { name: "Run now" }).click();
  await lifecycle.getByText(/^completed, /).waitFor();

  const scrub = page.locator("main tr[data-row='scrub']");
  await scrub.getByText("Check of all files").click();
  const pane = page.getByRole("complementary", { name: "Details" });
  await pane.getByText("finds damage and heals it").waitFor();
  assert.match(page.url(), /\?job=scrub$/);
  await scrub.getByRole("button", { name: "Run now" }).click();
  await pane.getByRole("progressbar", { name: "Check of all files" }).waitFor();
  await pane.getByText(new RegExp(`of ${OBJECTS} files, `)).waitFor();
  await checkPage(console, "a running job");
  await takePicture(console, "jobs running");
  await scrub.getByRole("button", { name: "Cancel" }).click();
  await scrub.getByText(/^cancelled, /).waitFor();
  await pane.getByText("Last run").waitFor();
  await scrub.getByRole("button", { name: "Run now" }).waitFor();
  await pane.getByRole("button", { name: "Run now" }).click();
  await scrub.getByRole("button", { name: "Cancel" }).click();
  await scrub.getByText(/^cancelled, /).waitFor();

  for (const look of LOOKS) {
    const other = await openPlatform(t, browser, platform, look);
    await goTo(other, "/storage/jobs?job=scrub");
    await other.page.getByText("Outcome").waitFor();
    await checkPage(other, `job ${look.name}`);
    await takePicture(other, `job ${look.name}`);
    await goTo(other, "/storage/jobs");
    await other.page.locator("main tr[data-row='scrub']").waitFor();
    await checkPage(other, `jobs ${look.name}`);
    await takePicture(other, `jobs ${look.name}`);
  }
});
