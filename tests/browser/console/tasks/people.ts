// Tasks with people: invite, disable and sign out.
import assert from "node:assert/strict";
import { before } from "node:test";
import type { Browser, Page } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import { BOB, type Platform } from "../../../identity/platform.ts";
import { onPlatform, testTask, type Task } from "./hands.ts";
import { joinInstallation } from "../installation.ts";

let browser: Browser;
let platform: Platform;
let bob = "";

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation());
  const { user } = (await platform.signIn(BOB)) as unknown as { user: { id: string } };
  bob = user.id;
});

/** Waits until a dialog shows the link. */
async function readInvitation(page: Page): Promise<void> {
  const shown = page.getByRole("dialog").locator(".cmd code");
  await shown.waitFor();
  assert.match(await shown.innerText(), /^https?:\/\/\S+$/);
}

async function enableBob(): Promise<void> {
  await assert.rejects(platform.signIn(BOB), "a disabled user cannot sign in");
  await platform.identity("PATCH", `/api/v1/users/${bob}`, { disabled: false }, platform.admin);
  await platform.signIn(BOB);
}

const TASKS: readonly Task[] = [
  {
    name: "invite a person",
    clicks: 2,
    byMouse: async (hand) => {
      await hand.openArea("Identity");
      await hand.page.getByRole("button", { name: "Invite" }).click();
      await readInvitation(hand.page);
    },
    byKeyboard: async (hand) => {
      await hand.press("g", "i");
      await hand.page.locator("main tr[data-row]").first().waitFor();
      await hand.press("i");
      await readInvitation(hand.page);
    },
  },
  {
    name: "disable and sign out a person",
    clicks: 3,
    byMouse: async (hand) => {
      const { page } = hand;
      await hand.openArea("Identity");
      await page.locator(`main tr[data-row='${bob}']`).click();
      await page.getByRole("button", { name: /^Disable(?!d)/ }).click();
      await page.getByText("all sessions have ended").waitFor();
    },
    byKeyboard: async (hand) => {
      const { page } = hand;
      await hand.press("g", "i");
      await hand.moveToRow(page.locator(`main tr[data-row='${bob}']`));
      await hand.press("Enter");
      await page.getByRole("button", { name: /^Disable(?!d)/ }).waitFor();
      await hand.press("d");
      await page.getByText("all sessions have ended").waitFor();
    },
    after: enableBob,
  },
];

const open = onPlatform(
  () => browser,
  () => platform,
);
for (const task of TASKS) testTask("platform", open, task);
