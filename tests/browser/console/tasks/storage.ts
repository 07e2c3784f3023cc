// Tasks with objects: upload, download, share. In the console of the platform and in that of storage alone.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import type { Browser, FileChooser, Page } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import type { Platform } from "../../../identity/platform.ts";
import { alone, type Keyboard, onPlatform, testTask, type Task } from "./hands.ts";
import { joinInstallation } from "../installation.ts";

const BUCKET = "pictures";
const NAME = "notes.txt";
const TEXT = "what was uploaded";
const folder = mkdtempSync(join(tmpdir(), "console-tasks-"));
const file = join(folder, NAME);

let browser: Browser;
let platform: Platform;

before(async () => {
  if (chromiumSkip !== false) return;
  writeFileSync(file, TEXT);
  ({ platform, browser } = await joinInstallation());
  await platform.storage("PUT", `/${BUCKET}`);
});

after(async () => {
  rmSync(folder, { recursive: true, force: true });
});

/** Drops a file of the disk in the middle of the list, as a file manager does. */
async function drop(page: Page, path: string): Promise<void> {
  const box = (await page.locator(".drop-zone").boundingBox())!;
  const at = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  const session = await page.context().newCDPSession(page);
  for (const type of ["dragEnter", "dragOver", "drop"] as const) {
    const data = { items: [], files: [path], dragOperationsMask: 1 };
    await session.send("Input.dispatchDragEvent", { type, ...at, data });
  }
}

async function checkShared(page: Page): Promise<void> {
  const link = await page.locator("dialog .cmd code").innerText();
  const shared = await fetch(link);
  assert.deepEqual([shared.status, await shared.text()], [200, TEXT]);
}

/** Opens the choice of files by its key. */
async function chooseFiles(hand: Keyboard): Promise<FileChooser> {
  const { page } = hand;
  const chooser = page.waitForEvent("filechooser");
  // The browser cancels a choice that opens before it is told to report it: the next answer comes after that.
  await page.evaluate("0");
  await hand.press("u");
  return await chooser;
}

async function remove(): Promise<void> {
  assert.equal(await platform.storage("GET", `/${BUCKET}/${NAME}`), TEXT);
  await platform.storage("DELETE", `/${BUCKET}/${NAME}`);
}

const TASK: Task = {
  name: "upload by 2 clicks and a drop, download by 2 more, share by 2 more",
  clicks: 6,
  byMouse: async (hand) => {
    const { page } = hand;
    await hand.openArea("Storage");
    await page.locator("main").getByRole("link", { name: BUCKET }).first().click();
    await page.getByText("Drop files here").waitFor();
    await drop(page, file);
    await page.getByText("1 uploaded").waitFor();
    await page.locator(`main tr[data-row='${NAME}']`).click();
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: "Download" }).click();
    assert.equal((await download).suggestedFilename(), NAME);
    await page.getByRole("button", { name: "Share…" }).click();
    await page.getByRole("button", { name: "Create the link" }).click();
    await checkShared(page);
  },
  byKeyboard: async (hand) => {
    const { page } = hand;
    await hand.press("g", "s");
    await hand.moveToRow(page.locator(`main tr[data-row='${BUCKET}']`));
    await hand.press("Enter");
    await page.getByText("Drop files here").waitFor();
    await (await chooseFiles(hand)).setFiles([file]);
    await page.getByText("1 uploaded").waitFor();
    await hand.moveToRow(page.locator(`main tr[data-row='${NAME}']`));
    await hand.press("Enter");
    await page.getByRole("link", { name: "Download" }).waitFor();
    const download = page.waitForEvent("download");
    await hand.press("d");
    assert.equal((await download).suggestedFilename(), NAME);
    await hand.press("s");
    await hand.tabTo(page.getByRole("button", { name: "Create the link" }));
    await hand.press("Enter");
    await checkShared(page);
  },
  after: remove,
};

testTask(
  "platform",
  onPlatform(
    () => browser,
    () => platform,
  ),
  TASK,
);
testTask(
  "storage alone",
  alone(
    () => browser,
    () => ({
      url: platform.vaultAdmin.origin,
      accessKey: platform.readCredential("STORE_ACCESS_KEY_ID"),
      token: platform.readCredential("STORE_SECRET_ACCESS_KEY"),
    }),
  ),
  TASK,
);
