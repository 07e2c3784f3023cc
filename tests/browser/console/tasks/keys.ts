// Task: a key for a program, of each kind.
import assert from "node:assert/strict";
import { before } from "node:test";
import type { Browser, Page } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import type { Platform } from "../../../identity/platform.ts";
import { onPlatform, testTask, type Task } from "./hands.ts";
import { joinInstallation } from "../installation.ts";

/** At least 128 bits, as letters and digits. */
const SECRET = /^[\w./+=-]{22,}$/;

let browser: Browser;
let platform: Platform;

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation());
});

/** Waits until a dialog shows the secret. */
async function readSecret(page: Page): Promise<void> {
  const shown = page.getByRole("dialog").locator(".cmd code").last();
  await shown.waitFor();
  assert.match(await shown.innerText(), SECRET);
}

/** A key of one kind, created at Access. */
function createKey(kind: string, key: string, fields: readonly string[]): Task {
  const fill = async (page: Page): Promise<void> => {
    await page.getByRole("dialog").waitFor();
    for (const [index, text] of fields.entries()) {
      if (index > 0) await page.keyboard.press("Tab");
      await page.keyboard.insertText(text);
    }
    await page.keyboard.press("Enter");
    await readSecret(page);
  };
  return {
    name: `a key for a program: ${kind}`,
    clicks: 2,
    byMouse: async (hand) => {
      await hand.openArea("Access");
      await hand.page.locator("main").getByRole("button", { name: kind }).click();
      await fill(hand.page);
    },
    byKeyboard: async (hand) => {
      await hand.press("g", "a");
      await hand.page.getByRole("heading", { name: "Access" }).waitFor();
      await hand.press(key);
      await fill(hand.page);
    },
  };
}

let added = 0;
/** The name of the next application: each hand adds one. */
const nextApplication = (): string => `desk-${(added += 1)}`;

/** An application, and its environment file saved. */
const addApplication: Task = {
  name: "an application with its file",
  clicks: 4,
  byMouse: async (hand) => {
    const { page } = hand;
    await hand.openArea("Access");
    await page.locator("main").getByRole("button", { name: "Add application" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    await page.keyboard.insertText(nextApplication());
    await dialog.getByRole("button", { name: "Add", exact: true }).click();
    const saved = page.waitForEvent("download");
    await dialog.getByRole("link", { name: /^Download/ }).click();
    await saved;
  },
  byKeyboard: async (hand) => {
    const { page } = hand;
    await hand.press("g", "a");
    await page.getByRole("heading", { name: "Access" }).waitFor();
    await hand.press("n");
    await page.getByRole("dialog").waitFor();
    await hand.type(nextApplication());
    await hand.press("Enter");
    const file = page.getByRole("dialog").getByRole("link", { name: /^Download/ });
    await hand.tabTo(file);
    const saved = page.waitForEvent("download");
    await hand.press("Enter");
    await saved;
  },
};

const open = onPlatform(
  () => browser,
  () => platform,
);
testTask("platform", open, createKey("New S3 key", "s", ["shop"]));
testTask("platform", open, createKey("New API key", "a", ["shop", "main"]));
testTask("platform", open, createKey("New client", "o", ["shop"]));
testTask("platform", open, addApplication);
