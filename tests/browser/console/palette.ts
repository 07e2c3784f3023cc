// Commands of other pages in the palette, in Chromium: each opens its page with its dialog; only what the user may do is listed.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import { ADA, type Platform } from "../../identity/platform.ts";
import {
  checkPage,
  goTo,
  LOOKS,
  openAt,
  openPlatform,
  signInAtIdentity,
  takePicture,
} from "./chromium.ts";
import { joinInstallation } from "./installation.ts";

const PROJECT = `server { port: 3000 }
every 1h ({ log }) { log.info("counted"); }
`;
/** Commands, and the titles of what they open. */
const DIALOGS: [command: string, title: string][] = [
  ["New API key", "New key"],
  ["Invite a person", "Invitation"],
  ["New user", "New user"],
  ["New group", "New group"],
  ["New client", "New client"],
  ["New role", "New role"],
  ["New bucket…", "New bucket"],
  ["New S3 key", "New S3 key"],
  ["New storage user", "New storage user"],
  ["New topic", "New topic"],
  ["New template", "New template"],
  ["Suppress an address", "Add an address"],
  ["New inbound rule", "New inbound rule"],
  ["Publish to orders", "Publish to orders"],
];

const GERMAN = `localStorage.setItem("platform.console", JSON.stringify({ language: "de" }))`;

let platform: Platform;
let browser: Browser;

before(async () => {
  if (chromiumSkip !== false) return;
  const environment = { PLATFORM_NOTIFY_INBOUND_PORT: "0" };
  ({ platform, browser } = await joinInstallation({ project: PROJECT, environment }));
  const message = { topic: "orders", payload: "{}" };
  await platform.callService(platform.pulse, platform.admin, "/publish", message);
});

/** Chooses an entry of the palette. */
async function choose(page: Page, text: string): Promise<void> {
  await page.keyboard.press("Control+k");
  const palette = page.getByRole("dialog", { name: "Go to or do…" });
  await palette.getByRole("combobox").fill(text);
  await palette.getByRole("option").filter({ hasText: text }).first().click();
  await palette.waitFor({ state: "detached" });
}

test("a command of another page opens its dialog", { skip: chromiumSkip }, async (t) => {
  const console = await openPlatform(t, browser, platform, LOOKS[0], "/settings");
  const { page } = console;
  for (const [command, title] of DIALOGS) {
    await goTo(console, "/settings");
    await choose(page, command);
    const dialog = page.getByRole("dialog", { name: title });
    await dialog.waitFor();
    if (command === "Invite a person")
      await page.getByRole("button", { name: "I have kept it" }).click();
    else await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  }
  await choose(page, "New route");
  await page.getByRole("heading", { name: "New route" }).waitFor();
  await goTo(console, "/settings");
  await choose(page, " now");
  await page.getByText(/ runs now\./).waitFor();
  assert.match(page.url(), /\/runtime\/schedules$/);
  // The dialog belongs to the command, not to the page.
  await goTo(console, "/identity/groups");
  await page.getByRole("button", { name: "New group" }).waitFor();
  assert.equal(await page.getByRole("dialog").count(), 0);
});

/** Addresses of what does not exist, and the list of all that does with its link. */
const MISSING: [path: string, list: string, link: string][] = [
  ["/gateway/routes/%2Fnothing", "/gateway/routes", "All routes"],
  ["/messaging/topics/nothing/tail", "/messaging/topics", "All topics"],
  ["/storage/buckets/nothing", "/storage/buckets", "All buckets"],
  ["/storage/buckets/-/nothing/policy", "/storage/buckets", "All buckets"],
  ["/identity/users?sel=nothing", "/identity/users", "All users"],
  ["/identity/groups?sel=nothing", "/identity/groups", "All groups"],
  ["/identity/roles?sel=nothing", "/identity/roles", "All roles"],
  ["/identity/clients?sel=nothing", "/identity/clients", "All clients"],
  ["/mail/templates/nothing", "/mail/templates", "All templates"],
  ["/mail/messages/nothing", "/mail/messages", "All messages"],
  ["/mail/inbound?sel=nothing", "/mail/inbound", "All rules"],
];

test("an address of what does not exist leads to the list", { skip: chromiumSkip }, async (t) => {
  const console = await openPlatform(t, browser, platform, LOOKS[1], "/settings");
  const { page } = console;
  for (const [path, list, link] of MISSING) {
    await goTo(console, path);
    await page.locator("main").getByText("Not found", { exact: true }).waitFor();
    await page.locator("main").getByRole("link", { name: link }).click();
    await page.waitForURL(`${platform.console.origin}/ui${list}`);
    await page.getByText("Not found", { exact: true }).waitFor({ state: "detached" });
  }
  // Services write English; the page adds a sentence in its language.
  await page.evaluate(GERMAN);
  await page.goto(`${platform.console.origin}/ui/messaging/topics/nothing/tail`);
  await page.getByText("Das gibt es nicht, oder nicht mehr.").waitFor();
  await page.locator("main p[lang=en]").getByText("topic").first().waitFor();
  await checkPage(console, "a problem in German");
});

for (const look of LOOKS) {
  test(`commands are listed after places: ${look.name}`, { skip: chromiumSkip }, async (t) => {
    const console = await openPlatform(t, browser, platform, look, "/settings");
    const { page } = console;
    await page.keyboard.press("Control+k");
    const palette = page.getByRole("dialog", { name: "Go to or do…" });
    await palette.getByRole("combobox").fill("new");
    await palette.getByText("Do", { exact: true }).waitFor();
    await checkPage(console, "palette");
    await takePicture(console, `palette-${look.width}`);
  });
}

test("what the user may not do is not listed", { skip: chromiumSkip }, async (t) => {
  const { page } = await openAt(t, browser, `${platform.console.origin}/ui/settings`);
  await signInAtIdentity(page, ADA);
  await page.keyboard.press("Control+k");
  const palette = page.getByRole("dialog", { name: "Go to or do…" });
  const options = palette.getByRole("option");
  await palette.getByRole("combobox").fill("New bucket");
  await options.first().waitFor();
  const refused = ["Invite", "New client", "New role", "New route", "New API key", " now"];
  for (const text of [...refused, "New S3 key", "New storage user", "New inbound rule"]) {
    await palette.getByRole("combobox").fill(text);
    await palette.getByText("No result").waitFor();
  }
});
