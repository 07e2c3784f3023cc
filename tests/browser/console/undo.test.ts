// Actions that wait to be undone, in Chromium: they happen once, disturb nothing else, and outlive their page.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { Platform } from "../../identity/platform.ts";
import { openPlatform } from "./chromium.ts";

const FOLDER = "/storage/buckets/papers";

let platform: Platform;
let browser: Browser;

before(async () => {
  if (chromiumSkip !== false) return;
  [platform, browser] = await Promise.all([Platform.start(), startChromium()]);
  await platform.storage("PUT", "/papers");
  for (const name of ["one", "two", "three"]) await platform.storage("PUT", `/papers/${name}`, "x");
});

after(async () => {
  await browser?.close();
  await platform?.stop();
});

/** Names of the objects that are left. */
async function listLeft(): Promise<string[]> {
  const listed = await platform.storage("GET", "/papers");
  return [...listed.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => key!);
}

test(
  "a deletion clicked twice happens once and leaves the view",
  { skip: chromiumSkip },
  async (t) => {
    const { page } = await openPlatform(t, browser, platform, undefined, `${FOLDER}?key=one`);
    const pane = page.getByRole("complementary", { name: "Details" });
    const remove = pane.getByRole("button", { name: "Delete", exact: true });
    const isSent = page.waitForResponse(
      (response) => response.url().endsWith("/delete") && response.request().method() === "POST",
    );
    await remove.dblclick();
    assert.equal(await page.getByRole("button", { name: "Undo" }).count(), 1);
    await page.locator("main tr[data-row='two']").click();
    await pane.getByText("two").first().waitFor();
    await isSent;
    await page.locator("main tr[data-row='one']").waitFor({ state: "detached" });
    assert.match(page.url(), /key=two/, "the object that was opened meanwhile stays open");
    assert.equal(await page.getByRole("alert").count(), 0);
  },
);

test("a deletion that waits happens when its page is closed", { skip: chromiumSkip }, async (t) => {
  const { page } = await openPlatform(t, browser, platform, undefined, `${FOLDER}?key=two`);
  const pane = page.getByRole("complementary", { name: "Details" });
  await pane.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("button", { name: "Undo" }).waitFor();
  await page.goto("about:blank");
  while ((await listLeft()).includes("two")) await page.waitForTimeout(50);
  assert.deepEqual(await listLeft(), ["three"]);
});

test(
  "a deletion that waits happens before the user is signed out",
  { skip: chromiumSkip },
  async (t) => {
    const { page } = await openPlatform(t, browser, platform, undefined, `${FOLDER}?key=three`);
    const pane = page.getByRole("complementary", { name: "Details" });
    await pane.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("button", { name: "Sign out" }).click();
    while ((await listLeft()).includes("three")) await page.waitForTimeout(50);
  },
);
