// Traffic of the gateway in Chromium: its log, read by mouse and keyboard and reached from the route that fails; its
// cache, invalidated by prefix and by tag.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import { type Platform, startUpstream } from "../../identity/platform.ts";
import { checkPage, goTo, LOOKS, openPlatform, PATIENCE_MS, takePicture } from "./chromium.ts";
import { joinInstallation } from "./installation.ts";

const POLL_MS = 200;
const open = { auth: { type: "none" } };
let platform: Platform;
let browser: Browser;
/** Requests that reached the server behind the gateway. */
let received = 0;
let local: Awaited<ReturnType<typeof startUpstream>>;

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation());
  local = await startUpstream((incoming, response) => {
    received++;
    response.statusCode = incoming.url?.startsWith("/shop/fails") === true ? 500 : 200;
    response.setHeader("Cache-Tag", incoming.url === "/stored/tagged" ? "offer" : "rest");
    response.end("ok");
  });
  const stored = { prefix: "/stored", target: local.url, cache_ttl_seconds: 600 };
  await platform.addRoute({ ...stored, ...open });
  await platform.addRoute({ prefix: "/shop", target: local.url, access_log: true, ...open });
  await platform.addRoute({ prefix: "/quiet", target: local.url, ...open });
});

after(async () => {
  local?.close();
});

for (const look of LOOKS) {
  test(`responses are invalidated: ${look.name}`, { skip: chromiumSkip }, async (t) => {
    await readTwice("/stored/1");
    await readTwice("/stored/tagged");
    const console = await openPlatform(t, browser, platform, look, "/gateway/cache");
    const { page } = console;
    const routes = page.getByRole("table", { name: "Routes that store responses" });
    await routes.getByRole("link", { name: "/stored" }).waitFor();
    assert.equal(await routes.getByRole("link", { name: "/quiet" }).count(), 0);
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
    assert.equal(await isFromCache("/stored/tagged"), false);
    assert.equal(await isFromCache("/stored/1"), true);

    const row = routes.getByRole("row").filter({ hasText: "/stored" });
    await row.getByRole("button", { name: "Invalidate…" }).click();
    assert.equal(await dialog.getByLabel("Path prefix").inputValue(), "/stored");
    await dialog.getByRole("button", { name: "Invalidate", exact: true }).click();
    await page.getByText("Invalidated responses: 2").waitFor();
    assert.equal(await isFromCache("/stored/1"), false);
  });
}

for (const look of LOOKS) {
  test(
    `requests are listed, filtered and read: ${look.name}`,
    { skip: chromiumSkip },
    async (t) => {
      await platform.ask("/shop/works?token=secret");
      await platform.ask("/shop/%3Cimg%20src=x%20onerror=1%3E");
      await platform.ask("/shop/fails");
      const console = await openPlatform(t, browser, platform, look, "/gateway/routes");
      const { page } = console;
      const shop = page.locator("main tr[data-row]").filter({ hasText: "/shop" });
      await shop.getByRole("link", { name: "/shop", exact: true }).waitFor();
      if (look.width > 760) await shop.getByText("open to all", { exact: true }).waitFor();
      await page.getByRole("link", { name: "/shop", exact: true }).click();
      const errors = page.getByRole("table", { name: "Last errors" });
      await errors.getByText("GET /shop/fails").first().waitFor();
      await page.getByText("No request since this page was opened").waitFor();
      // The stream begins when it is connected.
      const live = page.getByRole("table", { name: "Requests as they come" });
      const until = performance.now() + PATIENCE_MS;
      while ((await live.count()) === 0 && performance.now() < until) {
        await platform.ask("/shop/live");
        await page.waitForTimeout(POLL_MS);
      }
      await live.getByText("GET /shop/live").first().waitFor();
      await checkPage(console, "route");
      await takePicture(console, `route-errors-${look.width}`);

      await page.locator("main").getByRole("link", { name: "Log", exact: true }).click();
      assert.equal(new URL(page.url()).searchParams.get("route"), "/shop");
      const rows = page.locator("main tr[data-row]");
      await rows.filter({ hasText: "/shop/works" }).first().waitFor();
      if (look.width > 760) {
        const times = await rows.locator("td:first-child").allTextContents();
        assert.ok(times.length > 2, `${times.length} rows`);
        assert.deepEqual(
          times,
          times.toSorted().reverse(),
          "newest first, by the time that is shown",
        );
      }
      assert.ok(!(await page.content()).includes("token=secret"));
      await page.getByRole("button", { name: "5xx" }).click();
      await rows.filter({ hasText: "/shop/works" }).first().waitFor({ state: "detached" });
      assert.match(page.url(), /[?&]status=5xx/);
      await checkPage(console, "log");
      await takePicture(console, `log-${look.width}`);

      const failed = rows.filter({ hasText: "/shop/fails" }).first();
      await failed.focus();
      await page.keyboard.press("Enter");
      const copy = page.getByRole("button", { name: "Copy trace id" });
      await copy.waitFor();
      await checkPage(console, "request");
      await takePicture(console, `log-request-${look.width}`);

      await page.getByLabel("Path, target, address, code or ID").fill("nothing has this");
      await page.getByText("No request matches").waitFor();
      await goTo(console, "/gateway/routes/%2Fquiet");
      await page.getByText("Set access_log on this route to list its requests.").waitFor();
    },
  );
}

test(
  "a peak is sampled, and every request is shown after it",
  { skip: chromiumSkip },
  async (t) => {
    const { page } = await openPlatform(t, browser, platform, LOOKS[0], "/gateway/routes/%2Fshop");
    const section = page.locator("section").filter({ hasText: "Requests as they come" });
    const note = section.locator(".h2 small");
    const waitForNote = async (wanted: RegExp, ask: () => Promise<unknown>): Promise<void> => {
      const until = performance.now() + PATIENCE_MS;
      while (!wanted.test(await note.innerText())) {
        assert.ok(performance.now() < until, `${wanted.source}: ${await note.innerText()}`);
        // oxlint-disable-next-line no-await-in-loop -- The load goes on until the note changes.
        await ask();
        await page.waitForTimeout(POLL_MS);
      }
    };
    const peak = (): Promise<unknown> =>
      Promise.all(Array.from({ length: 30 }, () => platform.ask("/shop/peak")));
    await waitForNote(/1 in 10/, peak);
    await waitForNote(/^newest first/, async () => undefined);
    await waitForNote(/1 in 10/, peak);
  },
);

test(
  "rows stay while a request is read, and new ones follow afterwards",
  { skip: chromiumSkip },
  async (t) => {
    await platform.ask("/shop/first");
    const { page } = await openPlatform(
      t,
      browser,
      platform,
      LOOKS[0],
      "/gateway/log?filter=/shop/",
    );
    const rows = page.locator("main tr[data-row]");
    await rows.filter({ hasText: "/shop/first" }).first().click();
    await page.getByRole("button", { name: "Copy trace id" }).waitFor();
    await platform.ask("/shop/second");
    // It has arrived, and is not shown.
    await page.getByRole("status").getByText("1 newer").waitFor();
    assert.equal(await rows.filter({ hasText: "/shop/second" }).count(), 0);
    await page.keyboard.press("Escape");
    await rows.filter({ hasText: "/shop/second" }).first().waitFor();

    await page.keyboard.press("Space");
    await page.getByRole("button", { name: "Continue" }).waitFor();
    await platform.ask("/shop/third");
    await page.getByRole("status").getByText("1 newer").waitFor();
    assert.equal(await rows.filter({ hasText: "/shop/third" }).count(), 0);
    await page.keyboard.press("End");
    await rows.filter({ hasText: "/shop/third" }).first().waitFor();
    assert.equal(await rows.filter({ hasText: "/shop/second" }).count(), 1, "each is listed once");
  },
);

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
