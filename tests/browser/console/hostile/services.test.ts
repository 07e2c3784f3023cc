// Hostile text in every field of the gateway, identity, storage and the runtime: shown, never run.
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { Platform } from "../../../identity/platform.ts";
import { openPlatform } from "../chromium.ts";
import { checkHarmless, checkScreen, poison } from "./hostile.ts";

const SCREENS = [
  "/",
  "/gateway/routes",
  "/gateway/upstreams",
  "/gateway/keys",
  "/gateway/log",
  "/identity/users",
  "/identity/roles",
  "/identity/clients",
  "/identity/keys",
  "/identity/audit",
  "/storage/buckets",
  "/storage/buckets/pictures",
  "/storage/users",
  "/storage/drives",
  "/runtime/services",
  "/runtime/schedules",
  "/runtime/logs",
];
const PROJECT = `server { port: 3000 }
every 1h { log.info("counted"); }
`;

let browser: Browser;
let platform: Platform;

before(async () => {
  if (chromiumSkip !== false) return;
  [platform, browser] = await Promise.all([Platform.start({ project: PROJECT }), startChromium()]);
  await platform.storage("PUT", "/pictures");
  await platform.storage("PUT", "/pictures/notes.txt", "text", { "content-type": "text/plain" });
  await platform.storage("PUT", "/api/v1/users/shop", "{}", { "content-type": "application/json" });
  const key = JSON.stringify({ user: "shop" });
  await platform.storage("POST", "/api/v1/keys", key, { "content-type": "application/json" });
  await platform.breakRoute("/broken");
  await platform.gateway("POST", "/api/v1/admin/api-keys", { name: "shop", tenant: "main" });
});

after(async () => {
  await browser?.close();
  await platform?.stop();
});

test("each screen shows hostile text as it is", { skip: chromiumSkip }, async (t) => {
  const console = await openPlatform(t, browser, platform);
  const { page } = console;
  page.on("dialog", () => console.reports.push("a dialog opened"));
  await poison(page);
  await page.reload();
  await page.locator("main#content").waitFor();
  for (const path of SCREENS) await checkScreen(console, path);
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog").getByRole("combobox").fill("onerror");
  await page.getByRole("dialog").getByRole("option").first().waitFor();
  await checkHarmless(console, "palette");
});
