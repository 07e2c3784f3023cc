// Tasks of a project's author: find a row, change a cell, add an application, find the line of a failure, run a saved query.
import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { goTo } from "../chromium.ts";
import { developer, fillItems, useDeveloper } from "../developer.ts";
import { onPlatform, testTask, type Keyboard, type Mouse, type Task } from "./hands.ts";

const QUERY = "the newest people";

let names = 0;

useDeveloper(async () => {
  fillItems();
  const path = `/api/v1/projects/shop/databases/items/queries/${encodeURIComponent(QUERY)}`;
  const answer = await fetch(new URL(path, developer.platform.runtime), {
    method: "PUT",
    headers: {
      authorization: `Bearer ${developer.platform.readCredential("PLATFORM_RUNTIME_TOKEN")}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ sql: "select id, email from people order by id desc limit 5" }),
  });
  assert.ok(answer.ok, await answer.text());
});

/** Opens the page of the project: two clicks, or two keys, a row and Enter. */
async function openProject(hand: Mouse | Keyboard): Promise<void> {
  const row = hand.page.locator("main tr[data-row='shop']");
  if ("openArea" in hand) {
    await hand.openArea("Projects");
    await row.getByRole("link", { name: "shop", exact: true }).click();
    return;
  }
  await hand.press("g", "w");
  await hand.moveToRow(row);
  await hand.press("Enter");
}

const linkOf = (page: Page, name: string) =>
  page.locator("main .link-line").getByRole("link", { name, exact: true });

/** Types into the filter, which has the focus when a table is opened. */
async function findByEmail(page: Page): Promise<void> {
  await page.getByText("200 rows on this page").waitFor();
  await page.keyboard.type("p42@example.com");
  assert.equal(await page.getByLabel("Column", { exact: true }).inputValue(), "email");
  await page.keyboard.press("Enter");
  await page.getByText("1 row on this page").waitFor();
  await page.locator(".data-grid tr[data-row='[42]']").waitFor();
}

/** Names the application of the dialog, and keeps its file. */
async function keepFile(page: Page, download: () => Promise<void>): Promise<void> {
  const dialog = page.getByRole("dialog");
  const name = `kiosk-${(names += 1)}`;
  await dialog.getByLabel("Name").waitFor();
  await page.keyboard.type(name);
  await page.keyboard.press("Enter");
  const waiting = page.waitForEvent("download");
  await dialog.getByRole("link", { name: `Download ${name}.env` }).waitFor();
  await download();
  assert.equal((await waiting).suggestedFilename(), `${name}.env`);
  await dialog.getByRole("button", { name: "I have kept it" }).press("Enter");
  await dialog.waitFor({ state: "detached" });
}

async function openFailure(page: Page): Promise<void> {
  const answer = await developer.platform.ask("/broken", { host: "shop.localhost" });
  assert.equal(answer.status, 500);
  await goTo({ page, reports: [] }, "/gateway/log?status=5xx");
  await page.locator("main tr[data-row]").first().waitFor();
}

/** Opens the table, unlocked, with the row of one person. */
async function openRow({ page }: Mouse | Keyboard, id: number): Promise<Locator> {
  await goTo({ page, reports: [] }, "/projects/shop/data/items/people");
  await page.getByText("200 rows on this page").waitFor();
  return page.locator(`.data-grid tr[data-row="[${id}]"]`);
}

/** Replaces the text of the cell that is edited. */
async function changeEmail({ page }: Mouse | Keyboard, row: Locator): Promise<void> {
  const email = `new-${(names += 1)}@example.com`;
  await page.getByLabel("New value of email").waitFor();
  await page.keyboard.press("Control+A");
  await page.keyboard.type(email);
  await page.keyboard.press("Enter");
  await row.locator("td").filter({ hasText: email }).waitFor();
}

const TASKS: readonly Task[] = [
  {
    name: "change one cell",
    clicks: 4,
    byMouse: async (hand) => {
      const row = await openRow(hand, 12);
      await hand.page.getByRole("button", { name: "Unlock" }).click();
      // The pane of the row opens where the second click ends.
      await row.locator("td:nth-child(2)").dblclick();
      await changeEmail(hand, row);
    },
    byKeyboard: async (hand) => {
      const { page } = hand;
      const row = await openRow(hand, 13);
      // The filter has the focus; the head of the page is in front of it.
      await hand.tabTo(page.getByRole("button", { name: "Unlock" }), "Shift+Tab");
      await hand.press("Enter");
      await hand.moveToRow(row);
      for (const key of ["ArrowRight", "ArrowRight", "Enter"]) await hand.press(key);
      await changeEmail(hand, row);
    },
  },
  {
    name: "find a row by its email",
    clicks: 3,
    byMouse: async (hand) => {
      await openProject(hand);
      await linkOf(hand.page, "people").click();
      await findByEmail(hand.page);
    },
    byKeyboard: async (hand) => {
      await openProject(hand);
      await hand.tabTo(linkOf(hand.page, "people"));
      await hand.press("Enter");
      await findByEmail(hand.page);
    },
  },
  {
    name: "add an application with its file",
    clicks: 4,
    byMouse: async (hand) => {
      const { page } = hand;
      await hand.openArea("Access");
      await page.getByRole("button", { name: "Add application" }).click();
      await keepFile(page, () => page.getByRole("link", { name: /^Download/ }).click());
    },
    byKeyboard: async (hand) => {
      const { page } = hand;
      await hand.find("Add application");
      await keepFile(page, async () => {
        await hand.tabTo(page.getByRole("link", { name: /^Download/ }));
        await hand.press("Enter");
      });
    },
  },
  {
    name: "from a 500 to the author's line",
    clicks: 2,
    byMouse: async ({ page }) => {
      await openFailure(page);
      await page.locator("main tr[data-row]").first().click();
      await page.getByRole("link", { name: "All of this trace" }).click();
      await page.getByText("main.service.ts:6").first().waitFor();
    },
    byKeyboard: async (hand) => {
      const { page } = hand;
      await openFailure(page);
      await hand.moveToRow(page.locator("main tr[data-row]").first());
      await hand.press("Enter");
      await hand.tabTo(page.getByRole("link", { name: "All of this trace" }));
      await hand.press("Enter");
      await page.getByText("main.service.ts:6").first().waitFor();
    },
  },
  {
    name: "run a saved query",
    clicks: 3,
    byMouse: async (hand) => {
      await openProject(hand);
      await linkOf(hand.page, QUERY).click();
      await hand.page.locator(".data-grid td").filter({ hasText: /^400$/ }).waitFor();
    },
    byKeyboard: async (hand) => {
      await openProject(hand);
      await hand.tabTo(linkOf(hand.page, QUERY));
      await hand.press("Enter");
      await hand.page.locator(".data-grid td").filter({ hasText: /^400$/ }).waitFor();
    },
  },
];

const open = onPlatform(
  () => developer.browser,
  () => developer.platform,
);
for (const task of TASKS) testTask("platform", open, task);
