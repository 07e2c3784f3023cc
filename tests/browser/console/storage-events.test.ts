// Events of storage in Chromium: where they go, and why one did not arrive.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { Platform } from "../../identity/platform.ts";
import { checkPage, goTo, LOOKS, openPlatform, takePicture } from "./chromium.ts";

const LONG = `${"a-long-name-".repeat(8)}hook`;

let platform: Platform;
let browser: Browser;
let receiver: Server;
let status = 503;

before(async () => {
  if (chromiumSkip !== false) return;
  receiver = createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(status).end());
  }).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  const environment = { PLATFORM_VAULT_EVENT_NETWORKS: "127.0.0.0/8" };
  [platform, browser] = await Promise.all([Platform.start({ environment }), startChromium()]);
});

after(async () => {
  await browser?.close();
  await platform?.stop();
  receiver?.close();
});

test("subscriptions show their last tries as they happen", { skip: chromiumSkip }, async (t) => {
  const console = await openPlatform(t, browser, platform, LOOKS[0], "/storage/events");
  const { page } = console;
  await page.getByText("No bucket sends events yet").waitFor();
  await checkPage(console, "no events");

  const { port } = receiver.address() as AddressInfo;
  const subscribe = (id: string, webhook: string): Promise<string> =>
    platform.storage(
      "POST",
      "/api/v1/events/subscribe",
      JSON.stringify({ id, bucket: "orders", events: ["objstore:ObjectCreated:*"], webhook }),
      { "content-type": "application/json" },
    );
  await platform.storage("PUT", "/orders");
  await subscribe("hook", `http://127.0.0.1:${port}/hook`);
  await platform.storage("PUT", "/orders/one.json", "{}");
  const row = page.locator("main tr[data-row='orders/hook']");
  await row.getByText(/failed, is sent again/).waitFor();
  await row.click();
  const pane = page.getByRole("complementary", { name: "Details" });
  await pane
    .getByText(/status 503/)
    .first()
    .waitFor();
  await pane.getByText("one.json").first().waitFor();
  await pane
    .getByText(/next attempt at \d/)
    .first()
    .waitFor();
  await pane.getByRole("button", { name: "Send a test" }).click();
  await pane.getByText("The test was not delivered").waitFor();
  await checkPage(console, "a failing subscription");
  status = 200;
  await row.getByText(/^delivered, /).waitFor();
  assert.match(await pane.innerText(), /attempt 1 /);
  await pane.getByRole("button", { name: "Send a test" }).click();
  await pane.getByText("The target accepts events").waitFor();
  await takePicture(console, "a subscription");

  await subscribe("other", `http://127.0.0.1:${port}/other`);
  const other = page.locator("main tr[data-row='orders/other']");
  await other.click();
  await pane.getByText("No event has been sent yet.").waitFor();
  await pane.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("button", { name: "Undo" }).click();
  await other.waitFor();
  await pane.getByRole("button", { name: "Delete", exact: true }).click();
  await other.waitFor({ state: "detached" });
  await row.waitFor();

  await subscribe(LONG, `http://127.0.0.1:${port}/${LONG}`);
  for (const look of LOOKS) {
    const looked = await openPlatform(t, browser, platform, look);
    await goTo(looked, "/storage/events");
    await looked.page.locator("main tr[data-row]").first().waitFor();
    await checkPage(looked, `events ${look.name}`);
    await takePicture(looked, `events ${look.name}`);
    await goTo(looked, "/storage/events?sel=orders%2Fhook");
    await looked.page.getByRole("button", { name: "Send a test" }).waitFor();
    await checkPage(looked, `a subscription ${look.name}`);
    await takePicture(looked, `a subscription ${look.name}`);
  }
});
