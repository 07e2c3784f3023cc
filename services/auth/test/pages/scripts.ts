// Scripts of the pages: visible passwords, their strength, passkeys in the username field, saved backup codes, local times.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { generateSync } from "otplib";
import type { Browser } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import { startWithAdmin } from "../client.ts";
import { STAGE_KINDS, type Stage } from "../stage.ts";
import { Person, shareBrowser } from "./chromium.ts";

const PASSWORD = "a long enough password";

describe("scripts of the pages", { skip: chromiumSkip }, () => {
  let stage: Stage;
  let browser: Browser;
  before(async () => {
    stage = await startWithAdmin(await STAGE_KINDS[0]!.prepare());
    browser = await shareBrowser();
  });
  after(async () => {
    await stage.close();
  });

  test("a new password can be seen, and its strength is said while it is typed", async () => {
    const ada = await Person.begin(browser);
    const requests: string[] = [];
    ada.page.on("request", (request) => requests.push(request.url()));
    await ada.open(`${stage.publicUrl}/sign-up`);
    await ada.enter({ Username: "adalove" });
    const field = ada.page.locator("#password");
    const status = ada.page.getByRole("status");
    for (const [password, text] of [
      ["abc", "Too short: characters missing: 5."],
      ["password1", "One of the most common passwords. Choose another one."],
      ["Adalove-77", "Too similar to your name or address."],
      ["platform 2026", "Too similar to the name of this service."],
      ["aaaaaaaaaaaa", "Weak: easy to guess."],
      ["Sommer2026!", "Fair: longer is better."],
      [PASSWORD, "Strong."],
    ] as const) {
      await field.fill(password);
      await status.filter({ hasText: text }).waitFor();
    }
    assert.equal(await field.getAttribute("type"), "password");
    await ada.page.getByRole("button", { name: "Show password" }).click();
    assert.equal(await field.getAttribute("type"), "text");
    assert.equal(await field.inputValue(), PASSWORD);
    await ada.expect("Create your account");
    const foreign = requests.filter((url) => new URL(url).origin !== stage.publicUrl);
    assert.deepEqual(foreign, []);
    assert.ok(requests.every((url) => new URL(url).search === ""));
    await ada.press("Create account", "Your account");
    await ada.end();
  });

  test("browsers offer the passkey in the username field, and backup codes are copied and saved", async () => {
    const permissions = ["clipboard-read", "clipboard-write"];
    const lise = await Person.begin(browser, { permissions, fillsIn: true });
    await lise.open(`${stage.publicUrl}/sign-up`);
    await lise.enter({ Username: "lise", Password: PASSWORD });
    await lise.press("Create account", "Your account");
    await lise.open(`${stage.publicUrl}/account/security`);
    await lise.press("Set up an authenticator app", "Set up an authenticator app");
    const key = await lise.page.locator("code.secret").innerText();
    const epoch = Math.floor(stage.clock.now() / 1000);
    await lise.enter({ Code: generateSync({ secret: key.replaceAll(" ", ""), epoch }) });
    await lise.press("Confirm", "Your backup codes");
    const codes = await lise.page.locator(".codes li").allInnerTexts();
    assert.equal(codes.length, 10);
    await lise.page.getByRole("button", { name: "Copy" }).click();
    await lise.page.getByText("The codes have been copied.").waitFor();
    assert.equal(await lise.page.evaluate("navigator.clipboard.readText()"), codes.join("\n"));
    const saving = lise.page.waitForEvent("download");
    await lise.page.getByRole("button", { name: "Save as a file" }).click();
    const file = await saving;
    assert.match(file.suggestedFilename(), /^backup-codes-localhost-\d+\.txt$/);
    const text = readFileSync(await file.path(), "utf8");
    assert.match(text, /^Backup codes for Platform \(localhost:\d+\)\. Each works once\.\n\n/);
    assert.ok(text.endsWith(`\n${codes.join("\n")}\n`));
    await lise.page.evaluate("globalThis.print = () => { globalThis.printed = true; }");
    await lise.page.getByRole("button", { name: "Print" }).click();
    assert.equal(await lise.page.evaluate("printed"), true);
    await lise.page.emulateMedia({ media: "print" });
    assert.equal(await lise.page.getByRole("button", { name: "Print" }).isVisible(), false);
    assert.equal(await lise.page.locator(".codes").isVisible(), true);
    await lise.page.emulateMedia({ media: null });

    await lise.open(`${stage.publicUrl}/account/security`);
    await lise.page.getByLabel("Name of the new passkey").fill(`Key <b>of</b> "Lise"`);
    await lise.press("Add a passkey", "Passkeys");
    await lise.page.getByText("The passkey has been added.").waitFor();
    await lise.page.getByText(`Key <b>of</b> "Lise"`, { exact: true }).waitFor();
    await lise.open(`${stage.publicUrl}/account/activity`);
    await lise.expect("Recent activity");
    assert.match(await lise.read(), /Passkey added/);
    await lise.open(`${stage.publicUrl}/sign-out`);
    await lise.page.getByRole("button", { name: "Sign out" }).click();
    await lise.page.getByRole("heading", { name: "Your account" }).waitFor();
    await lise.end();
  });

  test("times are in the reader's zone and language, and in UTC without scripts", async () => {
    const karl = await Person.begin(browser, { locale: "de-DE", timezone: "Pacific/Auckland" });
    await karl.open(`${stage.publicUrl}/sign-up`);
    await karl.page.getByLabel("Benutzername").fill("karl");
    await karl.page.locator("#password").fill(PASSWORD);
    await karl.page.getByRole("button", { name: "Konto anlegen" }).click();
    const time = karl.page.locator("dd time");
    await time.waitFor();
    const iso = (await time.getAttribute("datetime")) ?? "";
    const format = (timeZone: string): string =>
      new Intl.DateTimeFormat("de", { dateStyle: "medium", timeStyle: "short", timeZone }).format(
        new Date(iso),
      );
    await karl.page.locator("dd time[title]").waitFor();
    assert.equal(await time.innerText(), format("Pacific/Auckland"));
    assert.equal(await time.getAttribute("title"), `${format("UTC")} UTC`);
    await karl.end();
  });
});
