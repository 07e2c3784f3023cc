// The console of messaging alone, in Chromium, by mouse and by keyboard.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import {
  startPulseProcess,
  type PulseProcess,
} from "../../../services/pulse/test/fixture/pulse-process.ts";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { checkPage, goTo, HOSTILE, LOOKS, openConsole } from "./chromium.ts";

const TOKEN = "operator-token";
const TOPIC = "orders.created";

let browser: Browser;
let pulse: PulseProcess;
const ends: (() => unknown)[] = [];

before(async () => {
  if (chromiumSkip !== false) return;
  browser = await startChromium();
  pulse = await startPulseProcess(
    { after: (end) => void ends.push(end) },
    { PLATFORM_PULSE_TOKEN: TOKEN },
  );
  for (let n = 1; n <= 5; n += 1) await publishOrder(n, n % 2 === 0 ? "AT" : "DE");
  // A message without time to live becomes a dead letter as soon as it is read.
  const payload = JSON.stringify({ note: HOSTILE, currency: { code: "EUR" } });
  await pulse.publish({ topic: "refunds", payload, ttl_ms: 1 });
});

after(async () => {
  await browser?.close();
  for (const end of ends.reverse()) await end();
});

async function publishOrder(n: number, country: string): Promise<void> {
  const payload = JSON.stringify({ order_id: n, ship_to: country, note: HOSTILE });
  const { status } = await pulse.publish({ topic: TOPIC, key: `${HOSTILE}${n}`, payload });
  assert.equal(status, 200);
}

const PATHS = [
  "/",
  "/messaging/topics",
  `/messaging/topics/${TOPIC}/tail`,
  `/messaging/topics/${TOPIC}/browse`,
  `/messaging/topics/${TOPIC}/groups`,
  `/messaging/topics/${TOPIC}/schema`,
  `/messaging/topics/${TOPIC}/settings`,
  "/messaging/groups",
  "/messaging/dead",
  "/messaging/connections",
  "/settings",
];

for (const look of LOOKS) {
  test(
    `each page is accessible and within its window: ${look.name}`,
    { skip: chromiumSkip },
    async (t) => {
      const console = await openConsole(t, browser, { url: pulse.url, token: TOKEN, look });
      for (const path of PATHS) {
        await goTo(console, path);
        await checkPage(console, `${path} ${look.name}`);
      }
    },
  );
}

test(
  "wrong tokens are refused with the reason, and the page keeps no token",
  { skip: chromiumSkip },
  async (t) => {
    const context = await browser.newContext({ locale: "en-GB" });
    t.after(() => context.close());
    const page = await context.newPage();
    await page.goto(`${pulse.url}/ui/`);
    await page.getByLabel("Token").fill("wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").waitFor();
    await page.getByLabel("Token").fill(TOKEN);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator("main#content.body").waitFor();
    const stored = await page.evaluate(
      "JSON.stringify(localStorage) + JSON.stringify(sessionStorage)",
    );
    assert.doesNotMatch(String(stored), new RegExp(TOKEN));
    assert.equal(await page.evaluate("document.cookie"), "");
  },
);

test(
  "the tail shows messages as they come, filtered, in two clicks",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openConsole(t, browser, { url: pulse.url, token: TOKEN });
    const { page } = console;
    await page.getByRole("navigation", { name: "Console" }).getByText("Messaging").click();
    await page.getByRole("link", { name: TOPIC }).click();
    await page.getByRole("searchbox").fill('ship_to = "AT" and order_id > 90');
    await page.locator(".tail-row:visible").first().waitFor({ state: "detached" });
    // The subscription begins at the end: what is published before it is open is not sent.
    const row = page.locator(".tail-row:visible").filter({ hasText: '"order_id":91' });
    for (let n = 0; n < 40 && (await row.count()) === 0; n += 1) {
      await publishOrder(91, "AT");
      await publishOrder(92, "DE");
      await page.waitForTimeout(250);
    }
    await row.first().click();
    await page.getByRole("complementary", { name: "Details" }).getByText("message-id").waitFor();
    const other = page.locator(".tail-row:visible").filter({ hasText: '"order_id":92' });
    assert.equal(await other.count(), 0);
    await checkPage(console, "tail");
  },
);

test(
  "by keyboard: palette, places, rows and the list of keys",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openConsole(t, browser, { url: pulse.url, token: TOKEN });
    const { page } = console;
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill("orders");
    await page.getByRole("option", { name: TOPIC }).first().waitFor();
    await checkPage(console, "palette");
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/ui/messaging/topics/${TOPIC}/tail`);
    await page.keyboard.press("g");
    await page.keyboard.press("m");
    await page.waitForURL("**/ui/messaging/topics");
    await page.locator("main tr[data-row]").first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/ui/messaging/topics/*/tail");
    await page.keyboard.press("?");
    await page.getByRole("dialog").getByRole("heading", { name: "All keys" }).waitFor();
    await checkPage(console, "keys");
  },
);

test(
  "a message is published, and a topic is deleted only with its name typed",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openConsole(t, browser, { url: pulse.url, token: TOKEN });
    const { page } = console;
    await pulse.publish({ topic: "temporary", payload: "{}" });
    await goTo(console, "/messaging/topics/temporary/tail");
    // The key works once the topic has been loaded.
    const payload = page.getByLabel("Payload");
    for (let n = 0; n < 40 && (await payload.count()) === 0; n += 1) {
      await page.keyboard.press("p");
      await page.waitForTimeout(250);
    }
    await payload.fill('{"published":"here"}');
    await page.getByRole("button", { name: "Publish", exact: true }).click();
    await page.getByText("Stored at offset").waitFor();
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByText("Delete the topic…").click();
    const confirm = page.getByRole("dialog").getByRole("button", { name: "Delete" });
    assert.equal(await confirm.isDisabled(), true);
    await page.getByRole("dialog").getByRole("textbox").fill("temporary");
    await checkPage(console, "confirmation");
    await confirm.click();
    await page.waitForURL("**/ui/messaging/topics");
    assert.equal((await pulse.get("/api/v1/topics/temporary")).status, 404);
  },
);

test("a lost service dims its figures and says since when", { skip: chromiumSkip }, async (t) => {
  const own = await startPulseProcess(t, { PLATFORM_PULSE_TOKEN: TOKEN });
  const { page } = await openConsole(t, browser, { url: own.url, token: TOKEN });
  await page.getByText("live", { exact: true }).waitFor();
  await own.kill();
  await page.getByRole("button", { name: /lost, retry in/ }).waitFor();
  await page
    .locator(".trace.lost")
    .getByText(/No answer from the console since \d\d:\d\d:\d\d/)
    .waitFor();
});
