// Commands of other pages in the palette, in Chromium: each opens its page with its dialog; only what the user may do is listed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { BOB, Platform } from "../../identity/platform.ts";
import { checkPage, goTo, LOOKS, openAt, openPlatform, takePicture } from "./chromium.ts";

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
  ["New bucket…", "New bucket"],
  ["New topic", "New topic"],
  ["New template", "New template"],
  ["Suppress an address", "Add an address"],
  ["Publish to orders", "Publish to orders"],
];

let platform: Platform;
let browser: Browser;

before(async () => {
  if (chromiumSkip !== false) return;
  [platform, browser] = await Promise.all([Platform.start({ project: PROJECT }), startChromium()]);
  const message = { topic: "orders", payload: "{}" };
  await platform.callService(platform.pulse, platform.admin, "/publish", message);
});

after(async () => {
  await browser?.close();
  await platform?.stop();
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
    await page.keyboard.press("Escape");
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
  await page.getByRole("link", { name: "Continue with identity" }).click();
  await page.getByLabel("Username").first().fill(BOB.username);
  await page.getByLabel("Password").first().fill(BOB.password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.locator("main#content").waitFor();
  await page.keyboard.press("Control+k");
  const palette = page.getByRole("dialog", { name: "Go to or do…" });
  const options = palette.getByRole("option");
  await palette.getByRole("combobox").fill("settings");
  await options.first().waitFor();
  for (const text of ["Invite", "New client", "New route", "New API key", " now"]) {
    await palette.getByRole("combobox").fill(text);
    await palette.getByText("No result").waitFor();
  }
});
