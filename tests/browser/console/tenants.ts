// Topics of several tenants: an administrator sees all of them, and each page stays with the tenant that was opened.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import type { Platform } from "../../identity/platform.ts";
import { checkPage, goTo, LOOKS, openPlatform, takePicture } from "./chromium.ts";
import { joinInstallation } from "./installation.ts";

let platform: Platform;
let browser: Browser;

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation());
  // The operator has no tenant unless it chooses one.
  for (const tenant of ["", "acme"]) {
    const payload = `from ${tenant === "" ? "nobody" : tenant}`;
    const path = `/publish?tenant=${tenant}`;
    await platform.callService(platform.pulse, platform.admin, path, { topic: "orders", payload });
  }
});

test(
  "topics of all tenants are listed, and open with their own messages",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    await goTo(console, "/messaging/topics");
    const rows = page.locator("main tr[data-row]");
    await rows.nth(1).waitFor();
    assert.equal(await rows.count(), 2);
    for (const [tenant, text] of [
      ["acme", "from acme"],
      ["", "from nobody"],
    ] as const) {
      await goTo(console, "/messaging/topics");
      await page
        .locator(`tr[data-row="${tenant === "" ? "" : "acme:"}orders"] a`)
        .first()
        .click();
      await page.getByRole("link", { name: "Browse" }).click();
      await page.getByText(text).first().waitFor();
      assert.equal(new URL(page.url()).searchParams.get("tenant"), tenant);
      await page.getByRole("navigation", { name: "Console" }).getByText("Groups").click();
      assert.equal(new URL(page.url()).searchParams.get("tenant"), tenant, "in groups as well");
      await page.getByRole("navigation", { name: "Console" }).getByText("Topics").click();
      await page.getByRole("button", { name: "Show all tenants" }).waitFor();
      await rows.first().waitFor();
      assert.equal(await rows.count(), 1);
      await page.getByRole("button", { name: "Show all tenants" }).click();
      await rows.nth(1).waitFor();
    }
  },
);

for (const look of LOOKS) {
  test(`the list is accessible: ${look.name}`, { skip: chromiumSkip }, async (t) => {
    const console = await openPlatform(t, browser, platform, look);
    for (const path of [
      "/messaging/topics",
      "/messaging/topics?tenant=acme",
      "/messaging/topics/orders/tail?tenant=acme",
    ]) {
      await goTo(console, path);
      await checkPage(console, `${path} ${look.name}`);
    }
    await goTo(console, "/messaging/topics");
    await takePicture(console, `tenants ${look.name}`);
  });
}
