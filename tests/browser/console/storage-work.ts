// Work that storage does by itself, in Chromium: jobs are started, followed and cancelled; events show where they go and why
// one did not arrive; deletions wait to be undone, happen once, disturb nothing else, and outlive their page.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import type { Platform } from "../../identity/platform.ts";
import {
  checkPage,
  goTo,
  LOOKS,
  openAt,
  openPlatform,
  setLook,
  signInAtIdentity,
  takePicture,
} from "./chromium.ts";
import { joinInstallation } from "./installation.ts";

const MIB = 1024 * 1024;
/** At 16 MiB/s a check takes long enough to be cancelled, but nobody waits for it. */
const OBJECTS = 8;
const LONG = `${"a-long-name-".repeat(8)}hook`;
const FOLDER = "/storage/buckets/drafts";

let platform: Platform;
let browser: Browser;
let receiver: Server;
let status = 503;

before(async () => {
  if (chromiumSkip !== false) return;
  // For long lists, the rate of writes as well. Before anything that waits: the first call decides.
  const environment = {
    PLATFORM_VAULT_EVENT_NETWORKS: "127.0.0.0/8",
    PLATFORM_VAULT_TENANT_RATE: "0",
  };
  ({ platform, browser } = await joinInstallation({ environment }));
  receiver = createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(status).end());
  }).listen(0, "127.0.0.1");
  await once(receiver, "listening");
});

after(async () => {
  receiver?.close();
});

// The first test: the check counts all files of storage.
test("a job is started, followed and cancelled", { skip: chromiumSkip }, async (t) => {
  await platform.storage("PUT", "/large");
  for (let n = 0; n < OBJECTS; n += 1)
    await platform.storage("PUT", `/large/${n}`, "x".repeat(32 * MIB));
  const console = await openPlatform(t, browser, platform, LOOKS[0], "/storage/buckets");
  const { page } = console;
  const rail = page.getByRole("navigation", { name: "Console" });
  await rail.getByRole("link", { name: "Jobs", exact: true }).click();
  const lifecycle = page.locator("main tr[data-row='lifecycle']");
  await lifecycle.getByText("not yet").waitFor();
  await lifecycle.getByRole("button", { name: "Run now" }).click();
  await lifecycle.getByText(/^completed, /).waitFor();

  const scrub = page.locator("main tr[data-row='scrub']");
  await scrub.getByText("Check of all files").click();
  const pane = page.getByRole("complementary", { name: "Details" });
  await pane.getByText("finds damage and heals it").waitFor();
  assert.match(page.url(), /\?job=scrub$/);
  await scrub.getByRole("button", { name: "Run now" }).click();
  await pane.getByRole("progressbar", { name: "Check of all files" }).waitFor();
  await pane.getByText(new RegExp(`of ${OBJECTS} files, `)).waitFor();
  await checkPage(console, "a running job");
  await takePicture(console, "jobs running");
  await scrub.getByRole("button", { name: "Cancel" }).click();
  await scrub.getByText(/^cancelled, /).waitFor();
  await pane.getByText("Last run").waitFor();
  await scrub.getByRole("button", { name: "Run now" }).waitFor();
  await pane.getByRole("button", { name: "Run now" }).click();
  await scrub.getByRole("button", { name: "Cancel" }).click();
  await scrub.getByText(/^cancelled, /).waitFor();

  for (const look of LOOKS) {
    await setLook(page, look);
    await goTo(console, "/storage/jobs?job=scrub");
    await page.getByText("Outcome").waitFor();
    await checkPage(console, `job ${look.name}`);
    await takePicture(console, `job ${look.name}`);
    await goTo(console, "/storage/jobs");
    await page.locator("main tr[data-row='scrub']").waitFor();
    await checkPage(console, `jobs ${look.name}`);
    await takePicture(console, `jobs ${look.name}`);
  }
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
    await setLook(page, look);
    await goTo(console, "/storage/events");
    await page.locator("main tr[data-row]").first().waitFor();
    await checkPage(console, `events ${look.name}`);
    await takePicture(console, `events ${look.name}`);
    await goTo(console, "/storage/events?sel=orders%2Fhook");
    await page.getByRole("button", { name: "Send a test" }).waitFor();
    await checkPage(console, `a subscription ${look.name}`);
    await takePicture(console, `a subscription ${look.name}`);
  }
});

/** Names of the objects that are left. */
async function listLeft(): Promise<string[]> {
  const listed = await platform.storage("GET", "/drafts");
  return [...listed.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => key!);
}

test(
  "a deletion clicked twice happens once and leaves the view",
  { skip: chromiumSkip },
  async (t) => {
    await platform.storage("PUT", "/drafts");
    for (const name of ["one", "two", "three"])
      await platform.storage("PUT", `/drafts/${name}`, "x");
    const { page } = await openPlatform(t, browser, platform, undefined, `${FOLDER}?key=one`);
    const pane = page.getByRole("complementary", { name: "Details" });
    const remove = pane.getByRole("button", { name: "Delete", exact: true });
    const isSent = page.waitForResponse(
      (response) => response.url().endsWith("/delete") && response.request().method() === "POST",
    );
    await remove.dblclick();
    assert.equal(await page.getByRole("button", { name: "Undo" }).count(), 1);
    await page.locator("main tr[data-row='two']").click();
    await pane.getByText("two").first().waitFor();
    await isSent;
    await page.locator("main tr[data-row='one']").waitFor({ state: "detached" });
    assert.match(page.url(), /key=two/, "the object that was opened meanwhile stays open");
    assert.equal(await page.getByRole("alert").count(), 0);
  },
);

test("a deletion that waits happens when its page is closed", { skip: chromiumSkip }, async (t) => {
  const { page } = await openPlatform(t, browser, platform, undefined, `${FOLDER}?key=two`);
  const pane = page.getByRole("complementary", { name: "Details" });
  await pane.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("button", { name: "Undo" }).waitFor();
  await page.goto("about:blank");
  while ((await listLeft()).includes("two")) await page.waitForTimeout(50);
  assert.deepEqual(await listLeft(), ["three"]);
});

test(
  "a deletion that waits happens before the user is signed out",
  { skip: chromiumSkip },
  async (t) => {
    // A session of its own, which no other page has.
    const { page } = await openAt(t, browser, `${platform.console.origin}/ui${FOLDER}?key=three`);
    await signInAtIdentity(page);
    const pane = page.getByRole("complementary", { name: "Details" });
    await pane.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("button", { name: "Sign out" }).click();
    while ((await listLeft()).includes("three")) await page.waitForTimeout(50);
  },
);
