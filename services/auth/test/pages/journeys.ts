// Users at a real browser: Chromium with an authenticator, and an application that signs them in with openid-client.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { startWithAdmin } from "../client.ts";
import { STAGE_KINDS, type Stage } from "../stage.ts";
import { chromiumSkip } from "@platform/kernel/testing";
import { Person, shareBrowser } from "./chromium.ts";
import { findLink, openPostBox, type PostBox } from "./post-box.ts";
import { startApplication } from "./relying-party.ts";

const PASSWORD = "a long enough password";

describe("in Chromium", { skip: chromiumSkip, concurrency: true }, () => {
  let stage: Stage;
  let post: PostBox;
  let browser: Browser;
  before(async () => {
    post = await openPostBox();
    const settings = await STAGE_KINDS[0]!.prepare();
    stage = await startWithAdmin({ ...settings, platform_notify_url: post.url });
    browser = await shareBrowser();
  });
  after(async () => {
    await stage.close();
    post.close();
  });

  test("a user consents to an application, is not asked again, and revokes the consent", async () => {
    const application = await startApplication(stage, "Notes", {
      policy_uri: "https://notes.example/privacy",
    });
    const grace = await Person.begin(browser);
    await grace.open(`${stage.publicUrl}/sign-up`);
    await grace.enter({ Username: "grace", Password: PASSWORD });
    await grace.press("Create account", "Your account");
    await grace.open(`${stage.publicUrl}/sign-out`);
    await grace.press("Sign out", "Sign in");

    await grace.open(await application.begin({ prompt: "consent", login_hint: "grace" }));
    await grace.expect("Sign in to continue to Notes");
    await grace.enter({ Password: PASSWORD });
    await grace.page.getByRole("button", { name: "Sign in", exact: true }).click();
    await grace.expect("Allow Notes?");
    assert.match(await grace.read(), /See your email address/);
    await grace.page.getByRole("button", { name: "Allow", exact: true }).click();
    await grace.page.getByRole("heading", { name: "Back at Notes" }).waitFor();
    const tokens = await application.finish(new URL(grace.page.url()));
    assert.equal(tokens.claims()?.["preferred_username"], "grace");

    await grace.open(await application.begin({ scope: "openid profile" }));
    await grace.page.getByRole("heading", { name: "Back at Notes" }).waitFor();
    await application.finish(new URL(grace.page.url()));

    const other = await Person.begin(browser);
    await other.open(await application.begin({ scope: "openid email" }));
    await other.enter({ Username: "grace", Password: PASSWORD });
    await other.page.getByRole("button", { name: "Sign in", exact: true }).click();
    await other.page.getByRole("heading", { name: "Back at Notes" }).waitFor();
    await other.end();

    await grace.open(`${stage.publicUrl}/account/sessions`);
    await grace.expect("Where you are signed in");
    assert.match(await grace.read(), /Chrome on Linux/);
    await grace.open(`${stage.publicUrl}/account/applications`);
    await grace.expect("Applications with access to your account");
    await grace.page.getByRole("button", { name: "Revoke access of Notes" }).click();
    await grace.page.getByText("You have not allowed any applications.").waitFor();
    await assert.rejects(application.refresh(tokens.refresh_token!), { error: "invalid_grant" });

    await grace.open(await application.begin({ scope: "openid profile" }));
    await grace.expect("Allow Notes?");
    await grace.page.getByRole("button", { name: "Do not allow" }).click();
    await grace.page.getByRole("heading", { name: "Back at Notes" }).waitFor();
    assert.equal(new URL(grace.page.url()).searchParams.get("error"), "access_denied");
    await grace.end();
    application.close();
  });

  test("without scripts, in German, a user signs up for an application and recovers the account", async () => {
    const application = await startApplication(stage, "Fotos", { first_party: true });
    const karl = await Person.begin(browser, { hasScripts: false, locale: "de-AT" });
    await karl.open(await application.begin());
    await karl.page.getByRole("heading", { name: "Anmelden und weiter zu Fotos" }).waitFor();
    await karl.page.getByRole("link", { name: "Konto anlegen" }).click();
    await karl.page.getByLabel("Benutzername").fill("karl");
    await karl.page.getByLabel("E-Mail-Adresse").fill("karl@example.com");
    await karl.page.getByLabel("Passwort").fill(PASSWORD);
    await karl.page.getByRole("button", { name: "Konto anlegen" }).click();
    await karl.page.getByRole("heading", { name: "Back at Fotos" }).waitFor();
    const tokens = await application.finish(new URL(karl.page.url()));
    assert.ok(tokens.claims()?.sub);

    await karl.open(findLink(await post.wait("karl@example.com")));
    await karl.page.getByRole("button", { name: "Adresse bestätigen" }).click();
    await karl.page.getByRole("heading", { name: "Danke" }).waitFor();
    await karl.open(`${stage.publicUrl}/recover`);
    await karl.page.getByLabel("E-Mail-Adresse").fill("karl@example.com");
    await karl.page.getByRole("button", { name: "Link schicken" }).click();
    await karl.page.getByRole("heading", { name: "Sehen Sie in Ihr Postfach" }).waitFor();
    const letter = await post.wait("karl@example.com", (text) => text.includes("/recover?"));
    await karl.open(findLink(letter));
    await karl.page.getByLabel("Neues Passwort").fill("ein ganz anderes Passwort");
    await karl.page.getByRole("button", { name: "Passwort setzen" }).click();
    await karl.page.getByText("Ihr Passwort ist gesetzt.").waitFor();
    await karl.end();
    application.close();
  });
});
