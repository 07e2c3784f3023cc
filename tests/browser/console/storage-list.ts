// Long lists of objects in Chromium: pages are loaded as they come into view, and only rows in view are rendered.
import assert from "node:assert/strict";
import { Agent } from "node:http";
import { before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import type { Platform } from "../../identity/platform.ts";
import { checkPage, goTo, LOOKS, openPlatform, setLook } from "./chromium.ts";
import { joinInstallation } from "./installation.ts";

/** Objects: ten pages; 20 000 in the long form, in which writing them takes most of the time. */
const LONG = Number(process.env["PLATFORM_CONSOLE_OBJECTS"] ?? 2_000);
/** As the page groups its digits. */
const SHOWN = `${LONG / 1_000}.000`;
/** Requests in flight that write objects. */
const WRITERS = 50;
/** On an idle machine no task takes 200 ms; a busy one holds any task for longer. */
const FREEZE_MS_MAX = 2_000;
/** Of the page, after a collection, with all rows loaded. */
const HEAP_BYTES_MAX = 100_000_000;

/** The element that scrolls. On phones the table and what is below it scroll together. */
const SCROLLER = `[...document.querySelectorAll("main *")]
  .find((element) => /auto|scroll/.test(getComputedStyle(element).overflowY) && element.scrollHeight > element.clientHeight)`;
/** Scrolls to the end, as far as it is loaded. */
const SCROLL_DOWN = `${SCROLLER}.scrollTop = 1e9`;
/** Notes tasks of the main thread that take 50 ms or more. */
const WATCH_TASKS = `globalThis.tasks = [];
  new PerformanceObserver((list) => globalThis.tasks.push(...list.getEntries().map((entry) => entry.duration)))
    .observe({ type: "longtask", buffered: true });`;

let platform: Platform;
let browser: Browser;

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation());
});

let filled: Promise<string[]> | undefined;

/** Fills the bucket for all tests; returns the names of its objects. */
function fillOnce(): Promise<string[]> {
  filled ??= fill("long", LONG);
  return filled;
}

/** Creates a bucket with `count` objects; returns their names. */
async function fill(bucket: string, count: number): Promise<string[]> {
  await platform.storage("PUT", `/${bucket}`);
  const names = Array.from({ length: count }, (_, n) => `row-${String(n).padStart(5, "0")}`);
  const left = names.values();
  // A connection for each of thousands of requests would take most of the time. None is idle until all are written.
  const agent = new Agent({ keepAlive: true });
  const write = async (): Promise<void> => {
    for (const name of left) await platform.storage("PUT", `/${bucket}/${name}`, "x", {}, agent);
  };
  await Promise.all(Array.from({ length: WRITERS }, write));
  agent.destroy();
  return names;
}

/** Scrolls down until the row is there, page by page. */
async function scrollTo(page: Page, name: string): Promise<void> {
  const row = page.locator(`main tr[data-row='${name}']`);
  for (let n = 0; n < 1_000 && (await row.count()) === 0; n += 1) {
    await page.evaluate(SCROLL_DOWN);
    await page.waitForTimeout(100);
  }
  assert.equal(await row.count(), 1, await page.locator("main").innerText());
}

test(
  "more than a page of objects: a bounded number of rows, and no page wider than its window",
  { skip: chromiumSkip },
  async (t) => {
    const names = await fillOnce();
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    for (const look of LOOKS) {
      await setLook(page, look);
      await goTo(console, "/storage/buckets/long");
      await scrollTo(page, names.at(-1)!);
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

test(
  "a long list: pages come while one scrolls, nothing freezes, and the selection stays",
  { skip: chromiumSkip },
  async (t) => {
    const names = await fillOnce();
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    await goTo(console, "/storage/buckets/long");
    await page.evaluate(WATCH_TASKS);
    const first = page.locator(`main tr[data-row='${names[0]}']`);
    await first.getByRole("checkbox").check();
    await page.locator(`main tr[data-row='${names[2]}']`).getByText(names[2]!).click();
    await page.waitForURL(`**key=${names[2]}`);

    await scrollTo(page, names.at(-1)!);
    const rows = await page.locator("main tr[data-row]").count();
    assert.ok(rows < 200, `${rows} rows are rendered`);
    assert.equal(await page.locator("main table").getAttribute("aria-rowcount"), `${LONG + 1}`);
    assert.equal(await first.count(), 0, "the first row is not rendered any more");
    await page
      .locator(`main tr[data-row='${names.at(-1)}']`)
      .getByRole("checkbox")
      .check();
    await page.getByRole("button", { name: "Delete 2…" }).waitFor();

    await page.evaluate(`${SCROLLER}.scrollTop = 0`);
    await first.waitFor();
    assert.ok(await first.getByRole("checkbox").isChecked());
    assert.equal(await page.locator("main tr.sel").getAttribute("data-row"), names[2]);
    await page.getByRole("checkbox", { name: "Select all" }).check();
    await page.getByRole("button", { name: new RegExp(`^Delete ${SHOWN}…$`) }).waitFor();

    const tasks = (await page.evaluate("globalThis.tasks")) as number[];
    const longest = Math.round(Math.max(0, ...tasks));
    const devtools = await page.context().newCDPSession(page);
    await devtools.send("HeapProfiler.collectGarbage");
    const { usedSize } = await devtools.send("Runtime.getHeapUsage");
    t.diagnostic(
      `longest task ${longest} ms of ${tasks.length}, heap ${Math.round(usedSize / 1e6)} MB`,
    );
    assert.ok(longest < FREEZE_MS_MAX, `a task took ${longest} ms`);
    assert.ok(usedSize < HEAP_BYTES_MAX, `${usedSize} bytes`);
    await checkPage(console, "a long list");
  },
);
