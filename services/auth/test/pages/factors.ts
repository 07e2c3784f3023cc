// Passkeys and second factors in Chromium with an authenticator.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { generateSync } from "otplib";
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

  test("a user signs up, adds a passkey and a second factor, and signs in with each", async () => {
    // A separate stage, because its clock is moved.
    const own = await startWithAdmin({
      ...(await STAGE_KINDS[0]!.prepare()),
      platform_notify_url: post.url,
    });
    const ada = await Person.begin(browser);
    await ada.open(`${own.publicUrl}/sign-up`);
    await ada.expect("Create your account");
    await ada.enter({ Username: "ada", "Email address": "ada@example.com", Password: "password" });
    await ada.press("Create account", "There is a problem");
    await ada.enter({ Password: PASSWORD });
    await ada.press("Create account", "Your account");

    await ada.open(findLink(await post.wait("ada@example.com")));
    await ada.press("Confirm address", "Thank you");

    await ada.open(`${own.publicUrl}/account/security`);
    await ada.expect("Passkeys");
    await ada.press("Add a passkey", "Passkeys");
    await ada.page.getByText("The passkey has been added.").waitFor();
    await ada.press("Set up an authenticator app", "Set up an authenticator app");
    const key = await ada.page.locator("code.secret").innerText();
    const secret = key.replaceAll(" ", "");
    const readCode = (): string =>
      generateSync({ secret, epoch: Math.floor(own.clock.now() / 1000) });
    await ada.enter({ Code: "000000" });
    await ada.press("Confirm", "There is a problem");
    await ada.enter({ Code: readCode() });
    await ada.press("Confirm", "Your backup codes");
    await ada.page.getByRole("link", { name: "I have saved them" }).click();
    await ada.expect("Second step");

    await ada.open(`${own.publicUrl}/sign-out`);
    await ada.press("Sign out", "Sign in");
    await ada.press("Sign in with a passkey", "Your account");
    await ada.open(`${own.publicUrl}/sign-out`);
    await ada.press("Sign out", "Sign in");
    await ada.enter({ Username: "ada", Password: "not that" });
    await ada.press("Sign in", "There is a problem");
    await ada.enter({ Password: PASSWORD });
    await ada.press("Sign in", "Confirm that it is you");
    own.clock.advance(60_000);
    await ada.enter({ Code: readCode() });
    await ada.press("Confirm", "Your account");

    await ada.open(`${own.publicUrl}/account/security`);
    await ada.page.getByText("Rename").click();
    await ada.enter({ Name: "My laptop" });
    await ada.page.getByRole("button", { name: "New name for" }).click();
    await ada.page.getByText("The passkey has been renamed.").waitFor();
    own.clock.advance(11 * 60_000);
    await ada.press("Remove My laptop", "Confirm that it is you");
    await ada.press("Confirm with a passkey", "Passkeys");
    await ada.press("Remove My laptop", "Passkeys");
    await ada.page.getByText("The passkey has been removed.").waitFor();
    await ada.press("Remove Authenticator app", "Second step");
    await ada.page.getByText("You have no second step yet.").waitFor();
    await ada.end();
    await own.close();
  });

  test("an application that requires a second factor gets one, enrolled during the sign-in", async () => {
    const application = await startApplication(stage, "Bank");
    const lise = await Person.begin(browser);
    await lise.open(`${stage.publicUrl}/sign-up`);
    await lise.enter({ Username: "lise", Password: PASSWORD });
    await lise.press("Create account", "Your account");
    await lise.open(await application.begin({ acr_values: "2" }));
    await lise.expect("Confirm that it is you");
    assert.match(await lise.read(), /no second step yet/);
    await lise.open(`${stage.publicUrl}/account/security`);
    await lise.press("Add a passkey", "Passkeys");
    await lise.page.getByText("The passkey has been added.").waitFor();
    await lise.open(await application.begin({ acr_values: "2", scope: "openid" }));
    await lise.expect("Allow Bank?");
    await lise.page.context().clearCookies();
    await lise.open(`${stage.publicUrl}/sign-in`);
    await lise.enter({ Username: "lise", Password: PASSWORD });
    await lise.press("Sign in", "Your account");
    await lise.open(await application.begin({ acr_values: "2", scope: "openid" }));
    await lise.expect("Confirm that it is you");
    await lise.page.getByRole("button", { name: "Confirm with a passkey" }).click();
    await lise.expect("Allow Bank?");
    await lise.page.getByRole("button", { name: "Allow", exact: true }).click();
    await lise.page.getByRole("heading", { name: "Back at Bank" }).waitFor();
    const tokens = await application.finish(new URL(lise.page.url()));
    assert.equal(tokens.claims()?.["acr"], "2");
    await lise.end();
    application.close();
  });
});
