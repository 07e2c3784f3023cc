// A role that is taken from the signed-in user while pages are open: they say why an action is refused, and disable it.
import assert from "node:assert/strict";
import { before, test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import { ADMIN, type Platform, type User } from "../../identity/platform.ts";
import { checkPage, goTo, openAt, signInAtIdentity, type ConsolePage } from "./chromium.ts";
import { joinInstallation } from "./installation.ts";

const CAROL: User = { username: "carol", password: "yet another fine password" };
const WATCH_MS = 5_000;
/** Requests of an open page meanwhile: lists are read every three seconds, the session less often. */
const CALLS_MAX = 15;
/** Permissions of a token that is younger are not asked for again. */
const TOKEN_AGE_MS = 5_500;

const options = { skip: chromiumSkip };

let platform: Platform;
let browser: Browser;
let carol = "";

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation());
  await platform.identity("POST", "/api/v1/auth/register", { ...CAROL });
  const { user } = (await platform.signIn(CAROL)) as unknown as { user: { id: string } };
  carol = user.id;
});

/** Replaces carol's roles, as an administrator in another window. */
async function setRoles(roles: string[]): Promise<void> {
  const { access_token: token } = await platform.signIn(ADMIN);
  await platform.identity("PUT", `/api/v1/rbac/users/${carol}/roles`, { roles }, token);
}

/** The console with carol as administrator. */
async function open(t: TestContext): Promise<ConsolePage> {
  await setRoles(["admin"]);
  const console = await openAt(t, browser, `${platform.console.origin}/ui/settings`);
  await signInAtIdentity(console.page, CAROL);
  return console;
}

/** Pages, and an action of them that requires a permission by itself. */
const PAGES = [
  ["/identity/users", "New user"],
  ["/identity/groups", "New group"],
  ["/gateway/routes", "New route"],
  ["/storage/buckets", undefined],
  ["/messaging/topics", undefined],
  ["/mail/templates", "New template"],
  ["/tunnels", undefined],
  ["/runtime/services", undefined],
] as const;

test("the role of an administrator is taken while a form is open", options, async (t) => {
  const console = await open(t);
  const { page } = console;
  await goTo(console, "/identity/users");
  await page.getByRole("button", { name: "New user" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Username").fill("dave");
  await sleep(TOKEN_AGE_MS);
  await setRoles([]);
  await dialog.getByRole("button", { name: "Create" }).click();
  await dialog.getByText("Not permitted").waitFor();
  assert.match(await dialog.innerText(), /users:write|permission/, "the page says why");
  await page.keyboard.press("Escape");
  const create = page
    .getByRole("button", { name: "New user" })
    .and(page.locator("[aria-disabled]"));
  await create.waitFor();
  assert.equal(await create.getAttribute("title"), "Requires the permission users:write");
  for (const [path, label] of PAGES) {
    await goTo(console, path);
    let calls = 0;
    const count = (): void => void (calls += 1);
    page.on("request", count);
    await sleep(WATCH_MS);
    page.off("request", count);
    assert.ok(calls <= CALLS_MAX, `${path}: ${calls} requests in ${WATCH_MS} ms`);
    assert.ok((await page.locator("main").innerText()).trim().length > 20, `${path} is not blank`);
    if (label !== undefined) {
      const action = page.getByRole("button", { name: label });
      assert.equal(await action.first().getAttribute("aria-disabled"), "true", `${path}: ${label}`);
    }
    await checkPage(console, `${path} without permission`);
  }
  // The role comes back, and the user to the page: no new sign-in is needed.
  await setRoles(["admin"]);
  await goTo(console, "/identity/groups");
  const enabled = page
    .getByRole("button", { name: "New group" })
    .and(page.locator(":not([aria-disabled])"));
  while ((await enabled.count()) === 0) {
    await page.evaluate(`document.dispatchEvent(new Event("visibilitychange"))`);
    await sleep(1_000);
  }
});
