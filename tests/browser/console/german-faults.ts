// Wrong input in a German console: fields and their messages are in German, those of services as well.
import assert from "node:assert/strict";
import { before, test, type TestContext } from "node:test";
import type { Browser, Locator, Page } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import type { Platform } from "../../identity/platform.ts";
import {
  checkPage,
  goTo,
  openPlatform,
  replaceText,
  takePicture,
  type ConsolePage,
} from "./chromium.ts";
import { joinInstallation } from "./installation.ts";

const GERMAN = `localStorage.setItem("platform.console", JSON.stringify({ language: "de" }))`;

let platform: Platform;
let browser: Browser;

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation());
});

/** The console in German. */
async function open(t: TestContext, path: string): Promise<ConsolePage> {
  const console = await openPlatform(t, browser, platform);
  await console.page.evaluate(GERMAN);
  await console.page.reload();
  await console.page.locator("html[lang=de] main#content.body").waitFor();
  await goTo(console, path);
  return console;
}

/** The label of a field, with the field and its message. */
function fieldOf(page: Page, label: string): Locator {
  return page.locator("label.label").filter({
    has: page.locator("span:first-child", { hasText: new RegExp(`^${label}$`) }),
  });
}

async function fill(page: Page, label: string, value: string): Promise<void> {
  await fieldOf(page, label).locator("input, textarea").fill(value);
}

/** The message beside a field, once it has one. */
async function readFault(page: Page, label: string): Promise<string> {
  await fieldOf(page, label).locator("[aria-invalid=true]").waitFor();
  return await fieldOf(page, label).locator(".hint-bad").innerText();
}

test("routes: each wrong field", { skip: chromiumSkip }, async (t) => {
  const console = await open(t, "/gateway/routes/new");
  const { page } = console;
  await fill(page, "Präfix", "kein pfad");
  await fill(page, "Methoden", "get");
  await fill(page, "Ziele", "ftp://host");
  assert.match(await readFault(page, "Präfix"), /^Ein Pfad, der mit \/ beginnt/);
  assert.equal(await readFault(page, "Methoden"), "Eine Methode in Großbuchstaben, etwa GET");
  assert.match(await readFault(page, "Ziele"), /^Eine http- oder https-URL/);
  await fill(page, "Zeitlimit der Antwort in ms", "-5");
  assert.equal(await readFault(page, "Zeitlimit der Antwort in ms"), "Mindestens 1");
  await checkPage(console, "route editor with faults");
  await takePicture(console, "german-faults-route");
  await goTo(console, "/gateway/routes/new?as=json");
  await page.locator(".editor-problems", { hasText: "methods" }).waitFor();
  const problems = page.locator(".editor-problems");
  await replaceText(page, '{\n  "prefix": "/a",\n}');
  await problems.getByText("Vor } ist kein Komma erlaubt").waitFor();
  await replaceText(
    page,
    JSON.stringify({
      prefix: "/a",
      target: "http://127.0.0.1:1",
      rewrite: [{ pattern: "/(a", to: "/b" }],
    }),
  );
  await problems
    .getByText("Ein regulärer Ausdruck (RE2) wird erwartet: eine schließende ) fehlt")
    .waitFor();
});

test("users: name, address and password", { skip: chromiumSkip }, async (t) => {
  const console = await open(t, "/identity/users");
  const { page } = console;
  await page.getByRole("button", { name: "Neuer Benutzer" }).click();
  const dialog = page.getByRole("dialog");
  const submit = dialog.getByRole("button", { name: "Anlegen" });
  await submit.click();
  const BUBBLE = `document.querySelector("dialog input:invalid").validationMessage`;
  assert.equal(await page.evaluate(BUBBLE), "Erforderlich", "the browser's own message");
  await fill(page, "Benutzername", "-anna");
  await submit.click();
  assert.match(await readFault(page, "Benutzername"), /^1 bis 64 Buchstaben/);
  await fill(page, "Benutzername", "zkqwvbnlm");
  await fill(page, "Adresse", "anna@b");
  await fill(page, "Passwort", "kurz");
  await submit.click();
  await fill(page, "Adresse", "");
  await submit.click();
  await dialog.getByText("Mindestens 8 Zeichen").first().waitFor();
  assert.equal(await readFault(page, "Passwort"), "Mindestens 8 Zeichen");
  await fill(page, "Passwort", "zkqwvbnlm");
  await submit.click();
  await dialog.getByText("Dem Namen oder der Adresse zu ähnlich").first().waitFor();
  assert.doesNotMatch(await dialog.innerText(), /characters|similar|required/i);
  await checkPage(console, "user dialog with faults");
  await takePicture(console, "german-faults-user");
});

test("buckets: a name that S3 does not allow", { skip: chromiumSkip }, async (t) => {
  const { page } = await open(t, "/storage/buckets");
  await page.getByRole("button", { name: "Neuer Bucket" }).click();
  await fill(page, "Name", "Groß");
  await page.getByRole("dialog").getByRole("button", { name: "Anlegen" }).click();
  assert.match(await readFault(page, "Name"), /^3 bis 63 Kleinbuchstaben/);
});

test("topics: name and number of partitions", { skip: chromiumSkip }, async (t) => {
  const console = await open(t, "/messaging/topics");
  const { page } = console;
  await page.getByRole("button", { name: "Neues Topic" }).click();
  const dialog = page.getByRole("dialog");
  await fill(page, "Name", "a b");
  await dialog.getByRole("button", { name: "Anlegen" }).click();
  assert.match(await readFault(page, "Name"), /^Ein Name ohne Leerzeichen/);
  await fill(page, "Name", "bestellungen");
  await fill(page, "Partitionen", "100000");
  await dialog.getByRole("button", { name: "Anlegen" }).click();
  assert.match(await readFault(page, "Partitionen"), /^Höchstens \d+$/);
  await fill(page, "Partitionen", "0");
  await dialog.getByRole("button", { name: "Anlegen" }).click();
  await dialog.getByText("Mindestens 1").first().waitFor();
  await fill(page, "Partitionen", "1");
  await dialog.getByRole("button", { name: "Anlegen" }).click();
  await page.waitForURL("**/topics/bestellungen/tail*");
  await goTo(console, "/messaging/topics/bestellungen/schema");
  const problems = page.locator(".editor-problems");
  await replaceText(page, '{"a": "string" "b": "string"}');
  await problems.getByText("Zeile 1, Spalte 16").waitFor();
  await problems.getByText("Ein Komma oder } wird erwartet").waitFor();
  await replaceText(page, '{"properties": {"a": {"pattern": "[a"}}}');
  await problems.getByText("eine schließende ] fehlt: [a").waitFor();
});
