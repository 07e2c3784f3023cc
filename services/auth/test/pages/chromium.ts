// Chromium with an authenticator, and checks of every page that it opens.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { startChromium } from "@platform/kernel/testing";
import { findViolations } from "@platform/testing/accessibility";

// Longer than a busy machine needs.
const WAIT_MS = 60_000;
/** Folder for pictures of every page: narrow and wide, light and dark. */
const pictures = process.env["PLATFORM_TEST_PICTURES"];
let pictureCount = 0;
/**
 * Appearances in which every page is checked, and the rules of axe: all of them once, and the contrast in the other theme,
 * which differs only in colours. Pages have one column at any width.
 */
const LOOKS = [
  { width: 390, colorScheme: "light", rules: "all" },
  { width: 390, colorScheme: "dark", rules: "none" },
  { width: 1440, colorScheme: "dark", rules: ["color-contrast"] },
  { width: 1440, colorScheme: "light", rules: "none" },
] as const;
/** Pages that have been checked, by address, heading and title: most tests come past the same ones. */
const checked = new Set<string>();

let shared: Promise<Browser> | undefined;
after(async () => (await shared)?.close());

/** The browser of this process; the first call starts it. */
export function shareBrowser(): Promise<Browser> {
  shared ??= startChromium();
  return shared;
}

/** A user at the browser, with a device that stores passkeys. */
export class Person {
  readonly page: Page;
  readonly #context: BrowserContext;
  /** Resources that the browser refused to load or run. */
  readonly #refused: string[];
  readonly #hasScripts: boolean;

  private constructor(context: BrowserContext, page: Page, refused: string[], hasScripts: boolean) {
    this.#context = context;
    this.page = page;
    this.#refused = refused;
    this.#hasScripts = hasScripts;
  }

  /** Opens a profile. */
  static async begin(
    browser: Browser,
    options: {
      hasScripts?: boolean;
      locale?: string;
      userAgent?: string;
      timezone?: string;
      permissions?: string[];
      /** The device uses its passkey as soon as the browser may offer it in a field. Default: it may not. */
      fillsIn?: boolean;
    } = {},
  ): Promise<Person> {
    const { hasScripts = true, locale = "en", timezone, permissions, userAgent } = options;
    const context = await browser.newContext({
      javaScriptEnabled: hasScripts,
      locale,
      ...(userAgent === undefined ? {} : { userAgent }),
      ...(timezone === undefined ? {} : { timezoneId: timezone }),
      ...(permissions === undefined ? {} : { permissions }),
    });
    context.setDefaultTimeout(WAIT_MS);
    if (options.fillsIn !== true) await context.addInitScript(WITHOUT_FILLING_IN);
    const page = await context.newPage();
    const refused: string[] = [];
    page.on("console", (message) => {
      const text = message.text();
      if (text.includes("Content Security Policy") && !text.includes("favicon")) refused.push(text);
    });
    page.on("pageerror", (error) => refused.push(String(error)));
    if (hasScripts) {
      const protocol = await context.newCDPSession(page);
      await protocol.send("WebAuthn.enable");
      await protocol.send("WebAuthn.addVirtualAuthenticator", {
        options: {
          protocol: "ctap2",
          transport: "internal",
          hasResidentKey: true,
          hasUserVerification: true,
          isUserVerified: true,
          automaticPresenceSimulation: true,
        },
      });
    }
    return new Person(context, page, refused, hasScripts);
  }

  /** Opens an address. */
  async open(url: string | URL): Promise<void> {
    await this.page.goto(String(url));
  }

  /** Opens an address and checks its page. */
  async visit(url: string | URL): Promise<void> {
    await this.open(url);
    await this.#check(await this.page.locator("h1").innerText());
  }

  /** Fills in fields by their labels. */
  async enter(fields: Readonly<Record<string, string>>): Promise<void> {
    for (const [label, value] of Object.entries(fields)) {
      await this.page.getByLabel(label).first().fill(value);
    }
  }

  /** Presses the button with this name and waits for the page with the heading `heading`. */
  async press(name: string, heading: string): Promise<void> {
    const loaded = this.page.waitForEvent("domcontentloaded");
    await this.page.getByRole("button", { name, exact: true }).first().click();
    await loaded;
    await this.expect(heading);
  }

  /** Waits for the page with this heading and checks its accessibility. */
  async expect(heading: string): Promise<void> {
    await this.page.getByRole("heading", { name: heading, exact: true }).first().waitFor();
    await this.#check(heading);
  }

  /** The text of the page. */
  read(): Promise<string> {
    return this.page.locator("body").innerText();
  }

  /** Closes the profile; fails if a page's policy blocked anything. */
  async end(): Promise<void> {
    await this.#context.close();
    assert.deepEqual(this.#refused, []);
  }

  async #check(heading: string): Promise<void> {
    const { page } = this;
    await page.setViewportSize({ width: 320, height: 700 });
    const found = (await page.evaluate(LOOK)) as PageLook;
    assert.ok(found.width <= 320, `${heading} is ${found.width} px wide`);
    assert.equal(found.headings, 1, `${heading} has ${found.headings} main headings`);
    assert.match(found.language, /^[a-z]{2}$/);
    assert.deepEqual(found.unnamed, [], `${heading} has fields or buttons without a name`);
    assert.deepEqual(found.doubled, [], `${heading} has ids twice`);
    await this.#checkLooks(heading);
    await page.setViewportSize({ width: 1100, height: 900 });
  }

  // axe needs scripts: pages are the same without.
  async #checkLooks(heading: string): Promise<void> {
    const { page } = this;
    const path = new URL(page.url()).pathname.replace(/(?<=interaction\/).*/, "");
    // The title has the operator's name: its pages look different.
    const name = `${path} ${heading}, ${await page.title()}${this.#hasScripts ? "" : ", without scripts"}`;
    if (checked.has(name)) return;
    checked.add(name);
    const number = String((pictureCount += 1)).padStart(2, "0");
    const file = `${number}-${heading
      .toLowerCase()
      .replaceAll(/[^a-z]+/g, "-")
      .slice(0, 48)}`;
    for (const { width, colorScheme, rules } of LOOKS) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      const look = `${name}, ${width} px, ${colorScheme}`;
      // Colours in transition have no contrast to measure.
      if (this.#hasScripts) await page.evaluate(STILL);
      const isWider = await page.evaluate("document.documentElement.scrollWidth > innerWidth");
      assert.equal(isWider, false, `${look}: wider than its window`);
      await this.#takePicture(`${file}-${width}-${colorScheme}`);
      if (!this.#hasScripts || rules === "none") continue;
      const chosen = rules === "all" ? undefined : rules;
      assert.deepEqual(await findViolations(page, chosen), [], look);
    }
  }

  async #takePicture(name: string): Promise<void> {
    if (pictures === undefined) return;
    mkdirSync(pictures, { recursive: true });
    await this.page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
  }
}

const WITHOUT_FILLING_IN =
  "PublicKeyCredential.isConditionalMediationAvailable = async () => false;";
const STILL = `Promise.race([
  Promise.allSettled(document.getAnimations().map(({ finished }) => finished)),
  new Promise((resolve) => setTimeout(resolve, 5_000)),
]).then(() => undefined)`;

interface PageLook {
  width: number;
  headings: number;
  language: string;
  unnamed: string[];
  doubled: string[];
}

const LOOK = `(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const ids = all("[id]").map((element) => element.id);
  return {
    width: document.documentElement.scrollWidth,
    headings: all("h1").length,
    language: document.documentElement.lang,
    unnamed: all("input:not([type=hidden]), button, a, img")
      .filter((element) => !(element.labels?.length > 0 || element.getAttribute("aria-label") || element.hasAttribute("alt") || element.innerText?.trim() || element.textContent.trim()))
      .map((element) => element.outerHTML),
    doubled: ids.filter((id, index) => ids.indexOf(id) !== index),
  };
})()`;
