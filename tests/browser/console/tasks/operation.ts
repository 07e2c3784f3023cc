// Tasks of operators: is all well, why does a route fail, roll a canary back, is my job running.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import type { Browser, Locator, Page } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import type { Platform } from "../../../identity/platform.ts";
import { Canary } from "./canary.ts";
import { onPlatform, testTask, type Task } from "./hands.ts";
import { joinInstallation } from "../installation.ts";

const PROJECT = `server { port: 3000 }
export route GET /hello { return "hello"; }
every 1s ({ log }) { log.info("counted the orders"); }
`;

let browser: Browser;
let platform: Platform;
let target = "";
let canary: Canary;

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation({ project: PROJECT }));
  target = await platform.breakRoute("/broken");
  canary = await Canary.start(platform);
  await platform.storage("PUT", "/pictures");
  await platform.storage("PUT", "/pictures/notes.txt", "an installation in use");
});

after(async () => {
  await canary?.stop();
});

/** The condition of the route in "Needs you". */
function findCondition(page: Page): Locator {
  return page
    .locator(".need:visible")
    .filter({ hasText: `Requests to ${target} are stopped` })
    .first();
}

/** The row of a route. */
function findRoute(page: Page, prefix: string): Locator {
  return page.getByRole("table", { name: "Routes" }).locator(`tr[data-row='${prefix}']`);
}

const TASKS: readonly Task[] = [
  {
    name: "is all well, what needs me",
    clicks: 0,
    byMouse: async ({ page }) => {
      await platform.openCircuit("/broken");
      await findCondition(page).waitFor();
      assert.equal(await page.locator("table.ledger tbody tr").count(), 7);
    },
    byKeyboard: async ({ page }) => {
      await platform.openCircuit("/broken");
      await findCondition(page).waitFor();
    },
  },
  {
    name: "why does a route fail, and its log",
    clicks: 2,
    byMouse: async ({ page }) => {
      await platform.openCircuit("/broken");
      await findCondition(page).getByRole("link", { name: "Open" }).click();
      const row = page.locator(`main tr[data-row='${target}']`);
      await row.getByText(/circuit (half )?open/).waitFor();
      await row.getByText("/broken").waitFor({ state: "attached" });
      await row.getByRole("link", { name: "Log" }).click();
      // Every line has the text of the filter: the target.
      assert.equal(new URL(page.url()).searchParams.get("q"), target);
      await page.locator(".tail-row:visible").first().waitFor();
    },
    byKeyboard: async (hand) => {
      const { page } = hand;
      await platform.openCircuit("/broken");
      await findCondition(page).waitFor();
      await hand.find(`Requests to ${target}`);
      const row = page.locator(`main tr[data-row='${target}']`);
      await row.getByText(/circuit (half )?open/).waitFor();
      await hand.tabTo(row.getByRole("link", { name: "Log" }));
      await hand.press("Enter");
      // Every line has the text of the filter: the target.
      assert.equal(new URL(page.url()).searchParams.get("q"), target);
      await page.locator(".tail-row:visible").first().waitFor();
    },
  },
  {
    name: "roll a canary back",
    clicks: 2,
    byMouse: async (hand) => {
      const { page } = hand;
      await canary.waitForTraffic();
      await hand.openArea("Gateway");
      await findRoute(page, Canary.prefix).getByRole("button", { name: "Roll back" }).click();
      await findRoute(page, Canary.prefix).getByText("canary rolled back").waitFor();
      await canary.waitForStable();
    },
    byKeyboard: async (hand) => {
      const { page } = hand;
      await canary.waitForTraffic();
      await hand.press("g", "g");
      await hand.moveToRow(findRoute(page, Canary.prefix));
      await hand.tabTo(findRoute(page, Canary.prefix).getByRole("button", { name: "Roll back" }));
      await hand.press("Enter");
      await findRoute(page, Canary.prefix).getByText("canary rolled back").waitFor();
      await canary.waitForStable();
    },
    after: () => canary.restart(),
  },
  {
    name: "is my job running, and its log",
    clicks: 2,
    byMouse: async (hand) => {
      const { page } = hand;
      await hand.openArea("Runtime");
      const job = page.getByRole("table", { name: "Schedules" }).locator("tbody tr");
      await job.getByText(/\sm?s$|running/).waitFor();
      await job.getByRole("link", { name: "Log" }).click();
      await page.locator(".tail-row:visible").filter({ hasText: "counted" }).first().waitFor();
    },
    byKeyboard: async (hand) => {
      const { page } = hand;
      await hand.press("g", "r");
      const job = page.getByRole("table", { name: "Schedules" }).locator("tbody tr");
      await job.getByText(/\sm?s$|running/).waitFor();
      await hand.tabTo(job.getByRole("link", { name: "Log" }));
      await hand.press("Enter");
      await page.locator(".tail-row:visible").filter({ hasText: "counted" }).first().waitFor();
    },
  },
];

const open = onPlatform(
  () => browser,
  () => platform,
);
for (const task of TASKS) testTask("platform", open, task);
