// Long lists of objects in Chromium: pages are loaded as they come into view, and only rows in view are rendered.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { Platform } from "../../identity/platform.ts";
import { checkPage, goTo, LOOKS, openPlatform } from "./chromium.ts";

/** Scrolls to the end, as far as it is loaded. On phones the table and what is below it scroll together. */
const SCROLL_DOWN = `[...document.querySelectorAll("main *")]
  .find((element) => /auto|scroll/.test(getComputedStyle(element).overflowY) && element.scrollHeight > element.clientHeight)
  .scrollTop = 1e9`;

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

test(
  "more than a page of objects: a bounded number of rows, and no page wider than its window",
  { skip: chromiumSkip },
  async (t) => {
    await platform.storage("PUT", "/many");
    const names = Array.from({ length: 1_100 }, (_, n) => `row-${String(n).padStart(5, "0")}`);
    for (let at = 0; at < names.length; at += 50) {
      await Promise.all(
        names.slice(at, at + 50).map((name) => platform.storage("PUT", `/many/${name}`, "x")),
      );
    }
    for (const look of LOOKS) {
      const console = await openPlatform(t, browser, platform, look);
      const { page } = console;
      await goTo(console, "/storage/buckets/many");
      const last = page.locator(`main tr[data-row='${names.at(-1)}']`);
      for (let n = 0; n < 600 && (await last.count()) === 0; n += 1) {
        await page.evaluate(SCROLL_DOWN);
        await page.waitForTimeout(100);
      }
      assert.equal(await last.count(), 1, await page.locator("main").innerText());
      const rows = await page.locator("main tr[data-row]").count();
      assert.ok(rows < 200, `${rows} rows are rendered`);
      await checkPage(console, `objects ${look.name}`);
      for (const path of ["/storage/buckets", "/storage/users", "/storage/drives"]) {
        await goTo(console, path);
        await checkPage(console, `${path} ${look.name}`);
      }
    }
  },
);
