// The gateway's cache in Chromium: its use, the routes that store responses, invalidation by prefix and by tag.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { Platform, startUpstream } from "../../identity/platform.ts";
import { checkPage, LOOKS, openPlatform, takePicture } from "./chromium.ts";

const open = { auth: { type: "none" } };
let platform: Platform;
let browser: Browser;
let received = 0;
let local: Awaited<ReturnType<typeof startUpstream>>;

before(async () => {
  if (chromiumSkip !== false) return;
  [platform, browser] = await Promise.all([Platform.start(), startChromium()]);
  local = await startUpstream((incoming, response) => {
    received++;
    response.setHeader("Cache-Tag", incoming.url === "/shop/tagged" ? "offer" : "rest");
    response.end("ok");
  });
  const cached = { prefix: "/shop", target: local.url, cache_ttl_seconds: 600 };
  await platform.addRoute({ ...cached, ...open });
  await platform.addRoute({ prefix: "/plain", target: local.url, ...open });
});

after(async () => {
  await browser?.close();
  local?.close();
  await platform?.stop();
});

for (const look of LOOKS) {
  test(`responses are invalidated: ${look.name}`, { skip: chromiumSkip }, async (t) => {
    await readTwice("/shop/1");
    await readTwice("/shop/tagged");
    const console = await openPlatform(t, browser, platform, look, "/gateway/cache");
    const { page } = console;
    const routes = page.getByRole("table", { name: "Routes that store responses" });
    await routes.getByRole("link", { name: "/shop" }).waitFor();
    assert.equal(await routes.getByRole("link", { name: "/plain" }).count(), 0);
    await checkPage(console, "cache");
    await takePicture(console, `cache-${look.width}`);

    await page.getByRole("button", { name: "Invalidate responses…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Cache-Tag" }).click();
    await dialog.getByLabel("Cache-Tag").fill("offer");
    await checkPage(console, "cache dialog");
    await takePicture(console, `cache-dialog-${look.width}`);
    await dialog.getByRole("button", { name: "Invalidate", exact: true }).click();
    await page.getByText("Invalidated responses: 1").waitFor();
    assert.equal(await isFromCache("/shop/tagged"), false);
    assert.equal(await isFromCache("/shop/1"), true);

    const row = routes.getByRole("row").filter({ hasText: "/shop" });
    await row.getByRole("button", { name: "Invalidate…" }).click();
    assert.equal(await dialog.getByLabel("Path prefix").inputValue(), "/shop");
    await dialog.getByRole("button", { name: "Invalidate", exact: true }).click();
    await page.getByText("Invalidated responses: 2").waitFor();
    assert.equal(await isFromCache("/shop/1"), false);
  });
}

/** Asks twice; the second response is from the cache. */
async function readTwice(path: string): Promise<void> {
  await platform.ask(path);
  assert.equal(await isFromCache(path), true);
}

async function isFromCache(path: string): Promise<boolean> {
  const before = received;
  await platform.ask(path);
  return received === before;
}
