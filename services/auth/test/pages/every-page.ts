// Every page, with and without scripts: accessible in both themes at 390 and 1440 px, no wider than its window, no policy report,
// and no text of users, clients and browsers that runs.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import { ADMIN, expectStatus, join, signIn, startWithAdmin } from "../client.ts";
import { STAGE_KINDS, type Stage } from "../stage.ts";
import { Person, shareBrowser } from "./chromium.ts";
import { startApplication } from "./relying-party.ts";

const HOSTILE = `"><img src=x onerror="globalThis.ran=1"><script>globalThis.ran=1</script>`;
const LONG = `${"unbreakable".repeat(12)} ${HOSTILE}`;

const PUBLIC_PATHS = [
  "/sign-in?done=signed-out",
  "/sign-up",
  "/setup?token=none",
  "/recover",
  "/recover?token=none",
  "/verify-email?token=none",
  "/interaction/none",
  "/nowhere",
  "/api/v1/auth/device?user_code=ABCD",
  "/api/v1/auth/authorize?client_id=none",
];
const OWN_PATHS = [
  "/account",
  "/account/security",
  "/account/activity",
  "/account/sessions",
  "/account/applications",
  "/confirm",
  "/confirm?level=2",
  "/sign-out",
];

describe("every page", { skip: chromiumSkip }, () => {
  let stage: Stage;
  let browser: Browser;
  before(async () => {
    stage = await startWithAdmin(await STAGE_KINDS[0]!.prepare());
    browser = await shareBrowser();
  });
  after(async () => {
    await stage.close();
  });

  const visitAll = async (person: Person, paths: readonly string[]): Promise<void> => {
    for (const path of paths) {
      await person.visit(`${stage.publicUrl}${path}`);
      assert.equal(await person.page.locator("img[src='x']").count(), 0, path);
    }
  };

  const enter = async (person: Person, username: string, password: string): Promise<void> => {
    await person.open(`${stage.publicUrl}/sign-in`);
    await person.enter({ Username: username, Password: password });
    await person.page.getByRole("button", { name: "Sign in", exact: true }).click();
    await person.page.getByRole("heading", { name: "Your account" }).waitFor();
  };

  test("with scripts, hostile names and a hostile user agent", async () => {
    const ada = await join(stage, "ada");
    const { token } = await signIn(stage, ADMIN);
    await expectStatus(200, stage, "PATCH", `/api/v1/users/${ada.id}`, {
      token,
      body: { name: HOSTILE },
    });
    const application = await startApplication(stage, LONG, { scope: "openid profile email" });
    const person = await Person.begin(browser, { userAgent: `Firefox/1 Linux ${HOSTILE}` });
    await visitAll(person, PUBLIC_PATHS);
    await person.visit(await application.begin({ login_hint: HOSTILE, scope: "openid profile" }));
    await enter(person, ada.username, ada.password);
    await person.visit(await application.begin({ scope: "openid profile" }));
    assert.match(await person.read(), /<img src=x/, "names are shown as they are");
    await person.page.getByRole("button", { name: "Allow", exact: true }).click();
    await person.page.waitForURL((url) => url.origin !== stage.publicUrl);
    await person.open(`${stage.publicUrl}/account/security`);
    await person.page.getByLabel("Name of the new passkey").fill(HOSTILE.slice(0, 64));
    await person.press("Add a passkey", "Passkeys");
    await visitAll(person, OWN_PATHS);
    await visitAll(person, ["/api/v1/auth/oauth/logout"]);
    assert.equal(await person.page.evaluate("globalThis.ran"), undefined);
    await person.end();
    application.close();
  });

  test("without scripts", async () => {
    const grace = await join(stage, "grace");
    const person = await Person.begin(browser, { hasScripts: false });
    await visitAll(person, PUBLIC_PATHS);
    await enter(person, grace.username, grace.password);
    await visitAll(person, OWN_PATHS);
    await person.end();
  });

  test("forced colours, and no motion for those who ask for less", async () => {
    const person = await Person.begin(browser);
    await person.page.emulateMedia({ forcedColors: "active", reducedMotion: "reduce" });
    await person.open(`${stage.publicUrl}/sign-up`);
    const button = "getComputedStyle(document.querySelector('button.full'))";
    assert.equal(await person.page.evaluate(`${button}.borderTopStyle`), "solid");
    const duration = await person.page.evaluate(`parseFloat(${button}.transitionDuration)`);
    assert.ok(Number(duration) < 0.001, `${String(duration)} s`);
    await person.enter({ Password: "Sommer2026!" });
    await person.page.locator(".strength[data-level='2']").waitFor();
    const colors = await person.page.evaluate(
      "[...document.querySelectorAll('.strength > span')].map((one) => getComputedStyle(one).backgroundColor)",
    );
    const [first, , , last] = colors as string[];
    assert.notEqual(first, last, "the meter keeps its colours");
    await person.end();
  });
});
