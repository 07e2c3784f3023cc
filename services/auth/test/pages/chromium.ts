// Chromium with an authenticator, and checks of every page that it opens.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";

// Longer than a busy machine needs.
const WAIT_MS = 60_000;
/** Folder for pictures of every page: narrow and wide, light and dark. */
const pictures = process.env["PLATFORM_TEST_PICTURES"];
let pictureCount = 0;

/** A user at the browser, with a device that stores passkeys. */
export class Person {
  readonly page: Page;
  readonly #context: BrowserContext;
  /** Resources that the browser refused to load or run. */
  readonly #refused: string[];

  private constructor(context: BrowserContext, page: Page, refused: string[]) {
    this.#context = context;
    this.page = page;
    this.#refused = refused;
  }

  /** Opens a profile. */
  static async begin(
    browser: Browser,
    options: { hasScripts?: boolean; locale?: string } = {},
  ): Promise<Person> {
    const { hasScripts = true, locale = "en" } = options;
    const context = await browser.newContext({ javaScriptEnabled: hasScripts, locale });
    context.setDefaultTimeout(WAIT_MS);
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
    return new Person(context, page, refused);
  }

  /** Opens an address. */
  async open(url: string | URL): Promise<void> {
    await this.page.goto(String(url));
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
    if (pictures !== undefined) await this.#takePictures(pictures, heading);
    await page.setViewportSize({ width: 1100, height: 900 });
  }

  async #takePictures(folder: string, heading: string): Promise<void> {
    mkdirSync(folder, { recursive: true });
    const name = `${String((pictureCount += 1)).padStart(2, "0")}-${heading.toLowerCase().replaceAll(/[^a-z]+/g, "-")}`;
    for (const [width, colorScheme] of [
      [360, "light"],
      [1100, "dark"],
      [1100, "light"],
    ] as const) {
      await this.page.setViewportSize({ width, height: 800 });
      await this.page.emulateMedia({ colorScheme });
      const path = join(folder, `${name}-${width}-${colorScheme}.png`);
      await this.page.screenshot({ path, fullPage: true });
    }
  }
}

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
      .filter((element) => !(element.labels?.length > 0 || element.getAttribute("aria-label") || element.alt || element.innerText?.trim() || element.textContent.trim()))
      .map((element) => element.outerHTML),
    doubled: ids.filter((id, index) => ids.indexOf(id) !== index),
  };
})()`;
