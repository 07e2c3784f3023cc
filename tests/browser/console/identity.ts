// Identity's pages in Chromium: filters, access of a user, groups, sessions, clients, audit.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import { ADMIN, BOB, type Platform } from "../../identity/platform.ts";
import { checkPage, goTo, HOSTILE, LOOKS, openPlatform, takePicture } from "./chromium.ts";
import { joinInstallation } from "./installation.ts";

// 1 × 1 pixels.
const LOGO = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
  "base64",
);

const LEAVE = "Leave without saving?";

let platform: Platform;
let browser: Browser;
let bob = "";

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation());
  const { user } = (await platform.signIn(BOB)) as unknown as { user: { id: string } };
  bob = user.id;
});

for (const look of LOOKS) {
  test(`users, groups and sessions: ${look.name}`, { skip: chromiumSkip }, async (t) => {
    await platform.signIn(BOB);
    const console = await openPlatform(t, browser, platform, look, "/identity/users");
    const { page } = console;
    const row = page.locator(`main tr[data-row='${bob}']`);
    await row.waitFor();
    await page.getByRole("button", { name: "Disabled", exact: true }).click();
    await row.waitFor({ state: "detached" });
    await page.getByText("No user matches").waitFor();
    await page.getByRole("button", { name: "Active", exact: true }).click();
    await row.waitFor();
    await page.getByLabel("Role", { exact: true }).selectOption("admin");
    await row.waitFor({ state: "detached" });
    // While the list loads it has no rows at all.
    await page.locator("main tr[data-row]").filter({ hasText: ADMIN.username }).first().waitFor();
    assert.equal(await row.count(), 0);
    assert.match(page.url(), /state=active/);
    assert.match(page.url(), /role=admin/);
    await page.getByLabel("Role", { exact: true }).selectOption("");
    const cut = `[...document.querySelectorAll("main td .st")]
      .filter((one) => one.parentElement.scrollWidth > one.parentElement.clientWidth).length`;
    assert.equal(await page.evaluate(cut), 0, "states are whole");
    await row.click();
    await page.getByRole("heading", { name: "Ways to sign in" }).waitFor();
    await page.getByText("Password", { exact: true }).waitFor();
    await checkPage(console, "user");
    await takePicture(console, `user-${look.width}`);

    await goTo(console, "/identity/groups");
    await page.getByRole("button", { name: "New group" }).click();
    const name = `Night shift ${look.width}`;
    await page.getByRole("dialog").getByLabel("Name").fill(name);
    await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name }).waitFor();
    await page.getByRole("button", { name: "Add…" }).click();
    await page.getByRole("dialog").getByLabel("Username").fill("nobody-of-this-name");
    await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
    await page.getByText("There is no user with this username.").waitFor();
    await page.getByRole("dialog").getByLabel("Username").fill(BOB.username);
    await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
    await page.locator(".line").filter({ hasText: BOB.username }).waitFor();
    await checkPage(console, "group");
    await takePicture(console, `group-${look.width}`);
    await page.getByRole("button", { name: "Remove", exact: true }).click();
    await page.getByText("No members").waitFor();

    await goTo(console, "/identity/sessions");
    const sessions = page.locator("main tr[data-row]").filter({ hasText: BOB.username });
    await sessions.first().click();
    const id = await sessions.first().getAttribute("data-row");
    await page.getByRole("button", { name: "End", exact: true }).waitFor();
    await checkPage(console, "sessions");
    await takePicture(console, `sessions-${look.width}`);
    await page.getByRole("button", { name: "End", exact: true }).click();
    await page.getByText("The session has ended.").waitFor();
    await page.locator(`main tr[data-row='${id}']`).waitFor({ state: "detached" });
  });
}

test("a client is changed, and its new secret is shown once", { skip: chromiumSkip }, async (t) => {
  const console = await openPlatform(t, browser, platform, LOOKS[0], "/settings");
  const { page } = console;
  await goTo(console, "/identity/clients");
  await page.getByRole("button", { name: "New client" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("Reports");
  const create = dialog.getByRole("button", { name: "Create" });
  // The second Escape closes a dialog whether the page agrees or not.
  const closeTwice = async (): Promise<void> => {
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
  };
  const held = Promise.withResolvers<void>();
  await page.route("**/api/v1/auth/clients", async (route) => {
    await held.promise;
    await route.continue();
  });
  await create.click();
  await closeTwice();
  // The secret is on its way: a dialog that the browser has closed is opened again.
  await create.waitFor();
  await page.evaluate("history.back()");
  await page.getByRole("dialog", { name: LEAVE }).getByRole("button", { name: "Stay" }).click();
  held.resolve();
  const first = await dialog.locator("code").nth(1).innerText();
  await page.unroute("**/api/v1/auth/clients");
  await closeTwice();
  await dialog.getByText("cannot be shown again").waitFor();
  await checkPage(console, "a secret that would be lost");
  await dialog.getByRole("button", { name: "Keep open" }).click();
  await page.evaluate("history.back()");
  await page.getByRole("dialog", { name: LEAVE }).getByRole("button", { name: "Stay" }).click();
  assert.equal(await dialog.locator("code").nth(1).innerText(), first);
  await dialog.getByRole("button", { name: "Copy", exact: true }).last().click();
  await dialog.getByRole("button", { name: "Copied" }).waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.locator("main tr[data-row]").filter({ hasText: "Reports" }).click();
  await page.getByRole("button", { name: "Change", exact: true }).click();
  await dialog.getByLabel("Name").fill(`Reports ${HOSTILE}`);
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: `Reports ${HOSTILE}` }).waitFor();
  assert.equal(await page.evaluate(() => Reflect.get(globalThis, "ran") as unknown), undefined);
  await page.getByRole("button", { name: "Replace the secret…" }).click();
  const id = await page.locator("main tr.sel").getAttribute("data-row");
  await dialog.getByRole("textbox").fill(id ?? "");
  await dialog.getByRole("button", { name: "Replace", exact: true }).click();
  await page.getByRole("dialog", { name: "Client secret" }).waitFor();
  const second = await page.getByRole("dialog").locator("code").nth(1).innerText();
  assert.notEqual(second, first);
  await page.getByRole("button", { name: "I have kept it" }).click();
  assert.ok(!(await page.content()).includes(second), "it is gone with its dialog");
  await checkPage(console, "client");

  const choose = page.locator("input[type=file]");
  await choose.setInputFiles({ name: "a.png", mimeType: "image/png", buffer: Buffer.from("text") });
  await page.getByText("image: must be a PNG or JPEG").waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  await choose.setInputFiles({ name: "a.png", mimeType: "image/png", buffer: LOGO });
  const logo = page.getByRole("img", { name: `Logo of Reports ${HOSTILE}` });
  await logo.waitFor();
  assert.equal(await logo.evaluate((one) => Reflect.get(one, "naturalWidth") as unknown), 1);
  await checkPage(console, "logo");
  await takePicture(console, "client-logo");
  await page.getByRole("button", { name: "Remove", exact: true }).click();
  await page.getByText("None. PNG or JPEG").waitFor();
});

test("members of a group are paged", { skip: chromiumSkip }, async (t) => {
  const ask = (method: string, path: string, body?: object): Promise<unknown> =>
    platform.identity(method, `/api/v1/groups${path}`, body, platform.admin);
  const { group } = (await ask("POST", "", { name: "Everybody" })) as { group: { id: string } };
  const { user } = (await platform.signIn(ADMIN)) as unknown as { user: { id: string } };
  for (const id of [bob, user.id]) {
    // oxlint-disable-next-line no-await-in-loop -- Two changes of one group.
    await ask("PUT", `/${group.id}/members/${id}`);
  }
  const console = await openPlatform(t, browser, platform, LOOKS[1]);
  const { page } = console;
  // Pages of one member: a hundred people take minutes to register.
  await page.route(/\/members\?/, (route) =>
    route.continue({ url: route.request().url().replace("limit=100", "limit=1") }),
  );
  await goTo(console, `/identity/groups?sel=${group.id}`);
  const names = page.locator("aside .line b");
  await names.waitFor();
  const first = await names.innerText();
  const next = page.getByRole("button", { name: "Next page" });
  await next.click();
  await names.filter({ hasNotText: first }).waitFor();
  assert.deepEqual([first, await names.innerText()].sort(), [ADMIN.username, BOB.username].sort());
  assert.equal(await next.getAttribute("title"), "This is the last page");
  await checkPage(console, "second page");
  await takePicture(console, "group-page");
  await page.getByRole("button", { name: "Delete…" }).click();
  await page.getByText("More than 100 members lose").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "First page" }).click();
  await names.filter({ hasText: first }).waitFor();
});

test("the audit log is filtered by actor and time", { skip: chromiumSkip }, async (t) => {
  const console = await openPlatform(t, browser, platform, LOOKS[0], "/identity/audit");
  const { page } = console;
  const rows = page.locator("main tr[data-row]");
  await rows.first().waitFor();
  await rows
    .filter({ hasText: `user:${bob}` })
    .first()
    .click();
  await page.getByRole("button", { name: "All of this actor" }).click();
  await page.waitForURL(/actor=user/);
  await rows.filter({ hasNotText: bob }).first().waitFor({ state: "detached" });
  // While the page loads it has no rows at all.
  await rows.filter({ hasText: bob }).first().waitFor();
  assert.equal(await rows.filter({ hasNotText: bob }).count(), 0);
  await page.getByLabel("Until").fill("2020-01-01T00:00");
  await page.getByText("No event matches").waitFor();
  await checkPage(console, "audit");
});
