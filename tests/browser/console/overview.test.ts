// The overview in Chromium: its names, units and figures are whole at each width, labels keep their distance, and a platform at
// rest has no traffic.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { Platform } from "../../identity/platform.ts";
import { checkPage, goTo, openPlatform, takePicture, type ConsolePage } from "./chromium.ts";
import { findCutTexts } from "./cut-texts.ts";

/** 640 px is the layout of 1280 px at a zoom of 200 %. */
const WIDTHS = [390, 640, 1024, 1280, 1440];
const GERMAN = `localStorage.setItem("platform.console", JSON.stringify({ language: "de" }))`;
/** The least distance of two labels on one line of a chart. */
const LABEL_GAP_PX = 8;
/** A figure is the mean of the last second. */
const REST_MS = Number(process.env["PLATFORM_REST_SECONDS"] ?? 6) * 1_000;
const REST_LOOK_EVERY_MS = 6_000;
const isLong = process.env["PLATFORM_REST_SECONDS"] !== undefined;
const LOOP_MS = isLong ? 60_000 : 8_000;
/** Largest difference in req/s; a short look begins and ends within a second of the figure. */
const LOOP_FAULT = isLong ? 0.2 : 1;

/** Records the labels that charts draw. */
const RECORD_LABELS = `globalThis.labels_ = new Map();
  const draw = CanvasRenderingContext2D.prototype.fillText;
  const clear = CanvasRenderingContext2D.prototype.clearRect;
  CanvasRenderingContext2D.prototype.clearRect = function (...box) {
    globalThis.labels_.set(this.canvas, []);
    return clear.apply(this, box);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const { width } = this.measureText(text);
    const { e, f, a } = this.getTransform();
    const at = x * a + e;
    const align = this.textAlign;
    const left = align === "center" ? at - width / 2 : align === "right" || align === "end" ? at - width : at;
    const list = globalThis.labels_.get(this.canvas) ?? [];
    list.push({ text, left: left / devicePixelRatio, right: (left + width) / devicePixelRatio, y: Math.round(y + f) });
    globalThis.labels_.set(this.canvas, list);
    return draw.call(this, text, x, y);
  };`;
const READ_LABELS = `[...globalThis.labels_].filter(([canvas]) => canvas.isConnected).map(([, list]) => list)`;

interface Label {
  text: string;
  left: number;
  right: number;
  y: number;
}

let browser: Browser;
let platform: Platform;

before(async () => {
  if (chromiumSkip !== false) return;
  [platform, browser] = await Promise.all([Platform.start(), startChromium()]);
  // Not the page of a new installation.
  await platform.storage("PUT", "/overview");
});

after(async () => {
  await browser?.close();
  await platform?.stop();
});

for (const language of ["en", "de"]) {
  test(`texts are whole at each width: ${language}`, { skip: chromiumSkip }, async (t) => {
    const look = { name: "", width: 1280, height: 900, colorScheme: "light" } as const;
    const console = await openPlatform(t, browser, platform, look);
    const { page } = console;
    await page.addInitScript(RECORD_LABELS);
    if (language === "de") await page.evaluate(GERMAN);
    await page.reload();
    await page.locator(`html[lang=${language}] main#content.body`).waitFor();
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      await goTo(console, "/settings");
      await goTo(console, "/");
      await page.locator(".chart canvas").first().waitFor();
      await page.locator(".ledger .fig").first().waitFor();
      await checkPage(console, `${width} px`);
      await takePicture(console, `overview-${width}-${language}`);
      assert.deepEqual(await findCutTexts(page), [], `${width} px: cut off`);
      assert.deepEqual(await findCrowded(console), [], `${width} px: labels`);
    }
  });
}

/** Pairs of labels on one line of a chart that are too close. */
async function findCrowded({ page }: ConsolePage): Promise<string[]> {
  const charts = (await page.evaluate(READ_LABELS)) as Label[][];
  assert.ok(
    charts.some((labels) => labels.length > 2),
    "a chart has labels",
  );
  return charts.flatMap((labels) =>
    labels.flatMap((one, index) =>
      labels
        .slice(index + 1)
        .filter(({ y, left, right, text }) => {
          if (y !== one.y || (text === one.text && left === one.left)) return false;
          // Two places with one time.
          if (text === one.text && /^\d\d:\d\d/.test(text)) return true;
          return left < one.right + LABEL_GAP_PX && right > one.left - LABEL_GAP_PX;
        })
        .map(({ text }) => `${one.text} | ${text}`),
    ),
  );
}

test(
  "a platform at rest has no traffic while its console is open",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(t, browser, platform, undefined, "/");
    const { page } = console;
    await page.locator(".ledger .fig").first().waitFor();
    for (let restedMs = 0; restedMs < REST_MS; restedMs += REST_LOOK_EVERY_MS) {
      await sleep(REST_LOOK_EVERY_MS);
      await checkRest(console);
    }
    // One version of the product; those of the services are in its tooltip.
    const version = page.locator("section", { hasText: "Version" }).locator(".version-line");
    assert.match(await version.innerText(), /^\d+\.\d+\.\d+$/);
    assert.match((await version.getAttribute("title"))!, /^Gateway \d[^]*\nStorage \d/);
  },
);

test("a loop of ten requests a second is shown as that", { skip: chromiumSkip }, async (t) => {
  await platform.addRoute({
    prefix: "/loop",
    target: platform.auth.origin,
    auth: { type: "none" },
  });
  const { page } = await openPlatform(t, browser, platform, undefined, "/");
  const figure = page.locator(".ledger tr", { hasText: "Gateway" }).locator(".fig").first();
  await figure.waitFor();
  let sent = 0;
  const loop = setInterval(() => {
    sent += 1;
    void platform.ask("/loop").catch(() => undefined);
  }, 100);
  t.after(() => clearInterval(loop));
  // The mean of the last second, which is shown a second later.
  await sleep(3_000);
  const shown: number[] = [];
  const [sentBefore, begunMs] = [sent, performance.now()];
  while (performance.now() - begunMs < LOOP_MS) {
    shown.push(Number.parseFloat((await figure.innerText()).replace(",", ".")));
    await sleep(500);
  }
  const rate = ((sent - sentBefore) * 1_000) / (performance.now() - begunMs);
  const mean = shown.reduce((sum, one) => sum + one, 0) / shown.length;
  t.diagnostic(`sent ${rate.toFixed(2)} req/s, shown ${mean.toFixed(2)}`);
  assert.ok(Math.abs(mean - rate) <= LOOP_FAULT, `${rate} req/s are shown as ${shown.join(", ")}`);
});

/** Looks at other pages, and asserts that no figure of the overview counts that. */
async function checkRest(console: ConsolePage): Promise<void> {
  for (const path of ["/identity/users", "/messaging/topics", "/runtime/logs", "/"]) {
    await goTo(console, path);
  }
  await sleep(1_500);
  const rates = await console.page
    .locator(".ledger .fig")
    .filter({ hasText: /req\/s|errors\/s|p99|msg\/s|dead\/s/ })
    .allTextContents();
  assert.ok(rates.length >= 7, `${rates.length} figures`);
  for (const rate of rates) assert.match(rate.trim(), /^(?:0|–)\s/, rate);
}
