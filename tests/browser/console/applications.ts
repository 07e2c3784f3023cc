// Applications in Chromium: added with their file, renewed and removed, in every look.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parseEnv } from "node:util";
import { chromiumSkip } from "@platform/kernel/testing";
import { checkPage, goTo, openPlatform, takePicture } from "./chromium.ts";
import { findCutTexts } from "./cut-texts.ts";
import { developer, openIn, PAGE_LOOKS, useDeveloper } from "./developer.ts";

useDeveloper();

for (const look of PAGE_LOOKS) {
  test(
    `applications are accessible and within their window: ${look.name}`,
    { skip: chromiumSkip },
    async (t) => {
      const console = await openIn(t, look, "/access/applications");
      const { page } = console;
      const picture = `${look.width}-${look.language}`;
      await page.getByText("shop", { exact: true }).first().waitFor();
      await checkPage(console, `applications, ${look.name}`);
      await takePicture(console, `applications-${picture}`);
      await page.getByRole("button", { name: /Add application|Anwendung anlegen/ }).click();
      await page.getByRole("dialog").waitFor();
      await checkPage(console, `add an application, ${look.name}`);
      await takePicture(console, `applications-add-${picture}`);
      await page.keyboard.press("Escape");
      await page.getByText("shop", { exact: true }).first().click();
      await page.getByText("app-shop").waitFor();
      await checkPage(console, `an application, ${look.name}`);
      if (look.width > 760) assert.deepEqual(await findCutTexts(page), []);
      await takePicture(console, `applications-one-${picture}`);
      await page.evaluate("localStorage.clear()");
    },
  );
}

test(
  "an application is added with its file, renewed with an overlap, and removed",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(t, developer.browser, developer.platform);
    const { page } = console;
    await goTo(console, "/access/applications");
    await page.getByRole("button", { name: "Add application" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("Kiosk!");
    await dialog.getByRole("button", { name: "Add", exact: true }).click();
    await dialog.locator(".hint-bad, .problem").first().waitFor();
    await dialog.getByLabel("Name").fill("kiosk");
    await dialog.getByLabel("Bucket").fill("kiosk-files");
    await dialog.getByLabel("Topics").fill("kiosk.# orders");
    await dialog.getByLabel("It may send mail").check();
    await dialog.getByRole("button", { name: "Add", exact: true }).click();
    await dialog.getByText("OIDC_CLIENT_SECRET").waitFor();
    await checkPage(console, "the environment file");
    await takePicture(console, "applications-file");
    await page.keyboard.press("Escape");
    await dialog.getByText("It was not copied").waitFor();
    await dialog.getByRole("button", { name: "Keep open" }).click();
    await dialog.getByRole("button", { name: "Python" }).click();
    await dialog.getByText("import boto3").waitFor();
    const waiting = page.waitForEvent("download");
    await dialog.getByRole("link", { name: "Download kiosk.env" }).click();
    const download = await waiting;
    assert.equal(download.suggestedFilename(), "kiosk.env");
    const variables = parseEnv(readFileSync(await download.path(), "utf8"));
    assert.equal(variables["MESSAGING_TOPICS"], "kiosk.#,orders");
    await dialog.getByRole("button", { name: "I have kept it" }).click();

    await page.getByText("kiosk", { exact: true }).first().click();
    await page.getByRole("button", { name: "New secrets…" }).click();
    await dialog.getByRole("button", { name: "Replace" }).click();
    await dialog.getByText("before").waitFor();
    const shown = parseEnv(await dialog.locator("pre").innerText());
    assert.notEqual(shown["OIDC_CLIENT_SECRET"], variables["OIDC_CLIENT_SECRET"]);
    assert.equal(shown["OIDC_CLIENT_ID"], variables["OIDC_CLIENT_ID"]);
    await dialog.getByRole("button", { name: "Copy" }).click();
    await dialog.getByRole("button", { name: "I have kept it" }).click();
    await dialog.waitFor({ state: "detached" });

    await page.getByRole("button", { name: "Remove…" }).click();
    await dialog.getByRole("textbox").fill("kiosk");
    await dialog.getByRole("button", { name: "Remove" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.getByText("kiosk", { exact: true }).first().waitFor({ state: "detached" });
    await page.getByText("shop", { exact: true }).first().click();
    const renew = page.getByRole("button", { name: "New secrets…" });
    assert.equal(await renew.getAttribute("aria-disabled"), "true", "that of a project");
  },
);
