// Tunnels in Chromium: requests are filtered by their status, and share links are listed and revoked.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import { type Platform, startUpstream } from "../../identity/platform.ts";
import {
  checkPage,
  goTo,
  HOSTILE,
  LOOKS,
  openPlatform,
  PATIENCE_MS,
  takePicture,
} from "./chromium.ts";
import { joinInstallation } from "./installation.ts";

const POLL_MS = 50;

let platform: Platform;
let browser: Browser;
let local: Awaited<ReturnType<typeof startUpstream>>;
let tunnel: Awaited<ReturnType<Platform["share"]>>;

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation());
  local = await startUpstream((incoming, response) => {
    response.statusCode = incoming.url === "/fails" ? 500 : 200;
    response.setHeader("content-type", "text/html");
    response.end(HOSTILE);
  });
  tunnel = await platform.share(Number(new URL(local.url).port), "demo");
});

after(async () => {
  await tunnel?.close();
  local?.close();
});

/** Requests a path through the tunnel; returns the status. */
async function visit(path: string): Promise<number> {
  const { hostname, port } = tunnel.url;
  return await new Promise((resolve, reject) => {
    const headers = { host: `${hostname}:${port}`, "x-hostile": HOSTILE };
    request({ agent: false, host: "127.0.0.1", port, path, headers }, (answer) =>
      answer.resume().on("end", () => resolve(answer.statusCode ?? 0)),
    )
      .on("error", reject)
      .end();
  });
}

test(
  "requests appear by themselves, and wait while one is read",
  { skip: chromiumSkip },
  async (t) => {
    await visit("/begin");
    const console = await openPlatform(t, browser, platform, LOOKS[0], "/tunnels");
    const { page } = console;
    const lists: string[] = [];
    page.on("requestfinished", (one) => {
      if (/\/requests(?:\?|$)/.test(one.url())) lists.push(one.url());
    });
    await page.getByRole("row").filter({ hasText: "demo" }).getByRole("link").click();
    const rows = page.locator("main tr[data-row]");
    await rows.filter({ hasText: "/begin" }).first().waitFor();
    // The list is loaded with the page, and once more when its stream is open.
    const endsMs = performance.now() + PATIENCE_MS;
    while (lists.length < 2) {
      assert.ok(performance.now() < endsMs, "the stream is not open");
      await sleep(POLL_MS);
    }
    await visit("/live-1");
    await rows.filter({ hasText: "/live-1" }).waitFor();
    assert.equal(lists.length, 2, "the stream brought it");

    await rows.filter({ hasText: "/live-1" }).click();
    await visit("/live-2?token=hidden-from-pages");
    await visit("/live-3");
    const newer = page.getByRole("button", { name: "2 newer" });
    await newer.waitFor();
    assert.equal(await rows.filter({ hasText: "/live-2" }).count(), 0, "rows stay where they are");
    await checkPage(console, "held requests");
    await newer.click();
    await rows.filter({ hasText: "/live-3" }).waitFor();
    assert.match((await rows.first().textContent()) ?? "", /\/live-3/);

    await page.keyboard.press("r");
    await page.getByText("Replayed: 200").waitFor();
    await page.getByText("Show the original request").click();
    await page.getByRole("heading", { name: "Replays" }).waitFor();
    const har = page.waitForEvent("download");
    await page.getByRole("link", { name: "HAR", exact: true }).click();
    const saved = JSON.parse(readFileSync(await (await har).path(), "utf8")) as {
      log: { entries: unknown[] };
    };
    assert.equal(saved.log.entries.length, 1);
  },
);

for (const look of LOOKS) {
  test(
    `requests and share links are read, filtered and revoked: ${look.name}`,
    { skip: chromiumSkip },
    async (t) => {
      await visit("/works");
      await visit("/fails");
      const console = await openPlatform(t, browser, platform, look, "/tunnels");
      const { page } = console;
      await page.getByRole("row").filter({ hasText: "demo" }).getByRole("link").click();
      const rows = page.locator("main tr[data-row]");
      await rows.filter({ hasText: "/works" }).first().waitFor();
      await page.getByRole("button", { name: "5xx" }).click();
      await rows.filter({ hasText: "/works" }).first().waitFor({ state: "detached" });
      await rows.filter({ hasText: "/fails" }).first().waitFor();
      assert.match(page.url(), /[?&]status=5xx/);
      await checkPage(console, "requests");
      await takePicture(console, `requests-${look.width}`);

      const path = new URL(page.url()).pathname.replace(/^\/ui/, "").replace(/requests$/, "shares");
      await goTo(console, path);
      await page.getByRole("button", { name: "Share…" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
      const link = await page.getByRole("dialog").locator("code").textContent();
      const { pathname, search } = new URL(link ?? "");
      assert.equal(await visit(`${pathname}${search}`), 200);
      await page.getByRole("button", { name: "I have kept it" }).click();
      await page.getByText("Active", { exact: true }).waitFor();
      await checkPage(console, "share links");
      await takePicture(console, `shares-${look.width}`);
      await page.getByRole("button", { name: "Revoke…" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Revoke", exact: true }).click();
      await page.getByText("Active", { exact: true }).waitFor({ state: "detached" });
      assert.equal(await visit(`${pathname}${search}`), 410);
    },
  );
}
