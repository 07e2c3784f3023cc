// Less motion, if the system asks for it: no transitions, and a tail whose rows do not scroll by.
import assert from "node:assert/strict";
import { after, before, test, type TestContext } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { startPulseProcess } from "../../../services/pulse/test/fixture/pulse-process.ts";
import { openConsole, type ConsolePage } from "./chromium.ts";

const TOKEN = "operator-token";
const MESSAGES = 60;
const PACE_MS = 50;
/** The tail paints at most so often. */
const CALM_MS = 2_000;

let browser: Browser;
let pulse: Awaited<ReturnType<typeof startPulseProcess>>;
const ends: (() => unknown)[] = [];

before(async () => {
  if (chromiumSkip !== false) return;
  const stage = { after: (end: () => unknown) => void ends.push(end) };
  pulse = await startPulseProcess(stage, { PLATFORM_PULSE_TOKEN: TOKEN });
  browser = await startChromium();
});
after(async () => {
  await browser?.close();
  for (const end of ends.toReversed()) await end();
});

/** Elements of the page that move. */
const MOVING = `[...document.querySelectorAll("*")].filter((one) => {
  const { transitionDuration, animationName, scrollBehavior } = getComputedStyle(one);
  return animationName !== "none" || scrollBehavior === "smooth" ||
    transitionDuration.split(", ").some((time) => parseFloat(time) > 0.001);
}).length`;

/** Records when the tail paints. */
const RECORD_PAINTS = `globalThis.paints = [];
  new MutationObserver(() => globalThis.paints.push(performance.now()))
    .observe(document.querySelector(".tail"), { childList: true, characterData: true, subtree: true });`;

/** Opens a tail and publishes messages; returns the shortest time between two paints. */
async function watchTail(t: TestContext, motion: "reduce" | "no-preference"): Promise<number> {
  const topic = `orders.${motion}`;
  const opened = await openConsole(t, browser, { url: pulse.url, token: TOKEN });
  const { page } = opened;
  await page.emulateMedia({ reducedMotion: motion });
  await publish(opened, topic, 0);
  await page.goto(`${pulse.url}/ui/messaging/topics/${topic}/tail`);
  await page.locator(".tail-row:visible").first().waitFor();
  const moving = Number(await page.evaluate(MOVING));
  if (motion === "reduce") assert.equal(moving, 0, "nothing moves");
  else assert.ok(moving > 0, "the test finds what moves");
  await page.evaluate(RECORD_PAINTS);
  for (let n = 1; n <= MESSAGES; n += 1) {
    await publish(opened, topic, n);
    await page.waitForTimeout(PACE_MS);
  }
  const last = page.locator(".tail-row:visible").filter({ hasText: `"n":${MESSAGES}}` });
  await last.waitFor();
  const paints = (await page.evaluate("globalThis.paints")) as number[];
  assert.ok(paints.length > 1, `${paints.length} paints`);
  return Math.min(...paints.slice(1).map((at, index) => at - paints[index]!));
}

async function publish({ page }: ConsolePage, topic: string, n: number): Promise<void> {
  const json = { topic, payload: JSON.stringify({ n }) };
  const status = await page.evaluate(async (sent) => {
    const headers = { "content-type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify(sent) };
    return (await fetch("/api/v1/publish", init)).status;
  }, json);
  assert.ok(status < 300, `publish: ${status}`);
}

test(
  "with less motion nothing moves, and a tail paints seldom",
  { skip: chromiumSkip },
  async (t) => {
    // Timers and frames are rounded.
    const gap = await watchTail(t, "reduce");
    assert.ok(gap >= CALM_MS - 100, `${gap} ms between two paints`);
  },
);

test("without the wish a tail paints as messages come", { skip: chromiumSkip }, async (t) => {
  const gap = await watchTail(t, "no-preference");
  assert.ok(gap < CALM_MS / 2, `${gap} ms between two paints`);
});
