// Hostile text in every field of the gateway, identity, storage and the runtime: shown, never run.
import { makePlaces } from "../places.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import { makeCertificate } from "@platform/testing/certificates";
import type { Platform } from "../../../identity/platform.ts";
import { openPlatform } from "../chromium.ts";
import { checkHarmless, checkScreen, poison, stopPoison } from "./hostile.ts";
import { checkCovered, ROUTE, SERVICE_SCREENS } from "./screens.ts";
import { joinInstallation } from "../installation.ts";

const PROJECT = `server { port: 3000 }
every 1h { log.info("counted"); }
`;

const folder = mkdtempSync(join(tmpdir(), "console-"));
let browser: Browser;
let platform: Platform;

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation({ project: PROJECT }));
  await platform.identity("POST", "/api/v1/groups", { name: "Night shift" }, platform.admin);
  await platform.storage("PUT", "/pictures");
  await platform.storage("PUT", "/pictures/notes.txt", "text", { "content-type": "text/plain" });
  await platform.storage("PUT", "/api/v1/users/shop", "{}", { "content-type": "application/json" });
  await platform.storage(
    "POST",
    "/api/v1/events/subscribe",
    JSON.stringify({
      bucket: "pictures",
      events: ["objstore:ObjectCreated:*"],
      webhook: "http://hook.invalid/",
    }),
    { "content-type": "application/json" },
  );
  const key = JSON.stringify({ user: "shop" });
  await platform.storage("POST", "/api/v1/keys", key, { "content-type": "application/json" });
  const named = JSON.stringify({ name: "orders", description: "what customers sign" });
  await platform.storage("POST", "/admin/encryption-keys", named, {
    "content-type": "application/json",
  });
  const remote = { name: "archive", endpoint: "https://objects.example.com", region: "eu" };
  const keys = { access_key: "archive", secret_key: "secret-of-the-archive" };
  await platform.storage("POST", "/admin/remotes", JSON.stringify({ ...remote, ...keys }), {
    "content-type": "application/json",
  });
  await makePlaces(platform, "pictures", "copies", "archive");
  await platform.breakRoute(ROUTE);
  const target = "https://127.0.0.1:9";
  const open = { auth: { type: "none" }, target };
  await platform.addRoute({ ...open, prefix: "/cached", cache_ttl_seconds: 60, access_log: true });
  await platform.ask("/cached/anything");
  const { cert: root_ca_path } = makeCertificate(folder, "sealed", { days: 400 });
  await platform.addRoute({ ...open, prefix: "/sealed", root_ca_path });
  await platform.gateway("POST", "/api/v1/admin/api-keys", { name: "shop", tenant: "main" });
  await platform.addRoute({ ...open, prefix: "/models", ai: true });
  const budget = { tenant_id: "acme", max_tokens_per_minute: 1_000 };
  await platform.gateway("POST", "/api/v1/admin/ai-billing", budget);
});

after(async () => {
  rmSync(folder, { recursive: true, force: true });
});

test("each screen shows hostile text as it is", { skip: chromiumSkip }, async (t) => {
  const console = await openPlatform(t, browser, platform);
  const { page } = console;
  await checkCovered(console);
  await poison(t, console);
  for (const path of SERVICE_SCREENS) await checkScreen(console, path);
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog").getByRole("combobox").fill("onerror");
  await page.getByRole("dialog").getByRole("option").first().waitFor();
  await checkHarmless(console, "palette");
  await stopPoison(page);
});
