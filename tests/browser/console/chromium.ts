// The console in Chromium: signs in, and checks each page for accessibility, policy reports and its width.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { findViolations } from "@platform/testing/accessibility";
import { ADMIN, type Platform, type User } from "../../identity/platform.ts";

/** Pages wait for a loaded machine. */
export const PATIENCE_MS = 60_000;

/** Texts that run or render if a page treats them as HTML. */
export const HOSTILE = `<img src=x onerror="globalThis.ran=1"><script>globalThis.ran=1</script>`;

/** Appearances in which each page is checked. */
export const LOOKS = [
  { name: "light, 1440 px", width: 1440, height: 900, colorScheme: "light" },
  { name: "dark, 390 px", width: 390, height: 844, colorScheme: "dark" },
] as const;

/** A page of the console and what it reported. */
export interface ConsolePage {
  page: Page;
  /** Errors of scripts and violations of the page's policy. */
  reports: string[];
}

/** An appearance. */
export interface Look {
  name: string;
  width: number;
  height: number;
  colorScheme: "light" | "dark";
}

/** Signed-in browsers by platform: a password is slow to check by design. */
const signedIn = new WeakMap<Platform, StorageState>();

type StorageState = Awaited<ReturnType<BrowserContext["storageState"]>>;

/**
 * Contexts that pages of one person at one console share, by browser, console and person: a context of its own is a process
 * of the browser, which loads and compiles the console again.
 */
const shared = new WeakMap<Browser, Map<string, BrowserContext>>();

/** A person at a console. */
interface Seat {
  /** Origin of the console. */
  url: string;
  person: string;
  state?: StorageState | undefined;
}

/**
 * Opens the page of one service, signed in with its token, or its access key and secret, in the page of a former test if it
 * has left one.
 */
export async function openConsole(
  t: Pick<TestContext, "after">,
  browser: Browser,
  options: { url: string; token: string; accessKey?: string; look?: Look; path?: string },
): Promise<ConsolePage> {
  const { token, accessKey, look, path = "/" } = options;
  const url = new URL(options.url).origin;
  const seat = { url, person: accessKey ?? token };
  const { opened, isAtRest } = await openSharedPage(t, browser, seat, look);
  if (isAtRest) {
    await goTo(opened, path);
    return opened;
  }
  const { page } = opened;
  await page.goto(`${url}/ui${path}`);
  const signIn = page.getByRole("button", { name: "Sign in" });
  const content = page.locator("main#content.body");
  await signIn.or(content).first().waitFor();
  if (await signIn.isVisible()) {
    if (accessKey === undefined) await page.getByLabel("Token").fill(token);
    else {
      await page.getByLabel("Access key").fill(accessKey);
      await page.getByLabel("Secret key").fill(token);
    }
    await signIn.click();
  }
  await content.waitFor();
  return opened;
}

/** Opens the platform's console, signed in at identity as administrator, in the page of a former test if it has left one. */
export async function openPlatform(
  t: Pick<TestContext, "after">,
  browser: Browser,
  platform: Platform,
  look?: Look,
  path = "/settings",
): Promise<ConsolePage> {
  const state = signedIn.get(platform);
  const seat = { url: platform.console.origin, person: ADMIN.username, state };
  const { opened, isAtRest } = await openSharedPage(t, browser, seat, look);
  const { page } = opened;
  if (isAtRest) {
    await goTo(opened, path);
    return opened;
  }
  await page.goto(`${platform.console.origin}/ui${path}`);
  if (state === undefined) {
    await signInAtIdentity(page);
    await keepSignIn(opened, platform);
  }
  await page.locator("main#content.body").waitFor();
  return opened;
}

/** Gives further pages of `openPlatform`, in other browsers too, the session of this one. */
export async function keepSignIn({ page }: ConsolePage, platform: Platform): Promise<void> {
  signedIn.set(platform, await page.context().storageState());
}

/**
 * Opens a page in the context of former ones of this person: the page that the last test has left there, or a new one. It is
 * at rest if it shows the console's settings and nothing of that test.
 */
async function openSharedPage(
  t: Pick<TestContext, "after">,
  browser: Browser,
  { url, person, state }: Seat,
  look: Look = LOOKS[0],
): Promise<{ opened: ConsolePage; isAtRest: boolean }> {
  const contexts = shared.get(browser) ?? new Map<string, BrowserContext>();
  shared.set(browser, contexts);
  const key = `${url} ${person}`;
  let context = contexts.get(key);
  if (context === undefined) contexts.set(key, (context = await openContext(browser, look, state)));
  const former = left.get(context);
  left.delete(context);
  const isLeft = former !== undefined && !former.isClosed();
  const page = isLeft ? former : await context.newPage();
  const isAtRest = isLeft && (await page.evaluate(IS_AT_REST)) === true;
  const opened = await preparePage(page, look);
  t.after(() => leavePage(page, url));
  return { opened, isAtRest };
}

/** Pages that tests have left, one in a context: a new one is a process of the browser, which compiles the console again. */
const left = new WeakMap<BrowserContext, Page>();

/** Parts that stay when another page of the console is opened: dialogs, messages and uploads. */
const STAYING = "dialog[open], .toast, .uploads";

/**
 * Forgets preferences, which are of the context, and shows the settings, unless something would stay: also another language,
 * a look of the user's, widths of columns, an unlocked database.
 */
const LEAVE = `(() => {
  const { lang, dataset } = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const isPlain = lang === "en" && dataset.density === "dense" && dataset.theme === system &&
    Object.entries(localStorage).every(([, value]) => value === "{}");
  localStorage.clear();
  const isUnlocked = [...document.querySelectorAll("button")].some((one) => one.innerText === "Lock");
  if (!isPlain || isUnlocked || document.querySelector("${STAYING}") !== null) return;
  document.activeElement?.blur();
  scrollTo(0, 0);
  history.pushState(null, "", "/ui/settings");
  dispatchEvent(new PopStateEvent("popstate"));
})()`;

const IS_AT_REST = `(() => {
  globalThis.clicks = 0;
  return location.pathname === "/ui/settings" && document.querySelector("main#content.body") !== null &&
    document.querySelector("${STAYING}") === null;
})()`;

/** Events that tests listen to. */
const OBSERVED = ["console", "dialog", "pageerror", "request", "requestfinished", "response"];

/** Leaves a page for the next test, or closes it: two would follow the feeds of their console. */
async function leavePage(page: Page, origin: string): Promise<void> {
  if (page.isClosed()) return;
  const isOfConsole = page.url().startsWith(`${origin}/ui`);
  // A page that has left the console has no preferences.
  if (isOfConsole) await page.evaluate(LEAVE).catch(() => undefined);
  if (!isOfConsole || left.has(page.context())) return page.close();
  await page.unrouteAll({ behavior: "ignoreErrors" });
  for (const event of OBSERVED) page.removeAllListeners(event);
  left.set(page.context(), page);
}

/** Opens an address in a context of its own. */
export async function openAt(
  t: Pick<TestContext, "after">,
  browser: Browser,
  url: string,
  look?: Look,
): Promise<ConsolePage> {
  const opened = await openPage(t, browser, look);
  await opened.page.goto(url);
  return opened;
}

/** Signs in at identity, as administrator or as another user, from the console's sign-in page. */
export async function signInAtIdentity(page: Page, user: User = ADMIN): Promise<void> {
  await page.getByRole("link", { name: "Continue with identity" }).click();
  await page.getByLabel("Username").first().fill(user.username);
  await page.getByLabel("Password").first().fill(user.password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  // Identity's own page has another one.
  await page.locator("main#content.body").waitFor();
}

/**
 * Counts what a hand presses, in the page itself. A press that met a moving page is held back at the window and repeated: one
 * that reaches the document counts.
 */
const COUNT_CLICKS = `globalThis.clicks = 0;
  document.addEventListener("pointerdown", () => { globalThis.clicks += 1; }, true);`;

/** Clicks since the page was loaded. */
export async function readClicks({ page }: ConsolePage): Promise<number> {
  return Number(await page.evaluate("globalThis.clicks"));
}

async function openPage(
  t: Pick<TestContext, "after">,
  browser: Browser,
  look: Look = LOOKS[0],
): Promise<ConsolePage> {
  const context = await openContext(browser, look);
  t.after(() => context.close());
  return openPageIn(context, look);
}

async function openContext(
  browser: Browser,
  look: Look,
  storageState?: StorageState,
): Promise<BrowserContext> {
  const context = await browser.newContext({
    viewport: { width: look.width, height: look.height },
    colorScheme: look.colorScheme,
    locale: "en-GB",
    ...(storageState === undefined ? {} : { storageState }),
  });
  // A browser with a window grants it to a page that was clicked.
  await context.grantPermissions(["clipboard-write"]);
  await context.addInitScript(COUNT_CLICKS);
  return context;
}

async function openPageIn(context: BrowserContext, look: Look): Promise<ConsolePage> {
  return preparePage(await context.newPage(), look);
}

/** Gives a page another look. */
export async function setLook(page: Page, { width, height, colorScheme }: Look): Promise<void> {
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme, media: null, reducedMotion: null });
}

/** Gives a page its look, and collects what it reports. */
async function preparePage(page: Page, look: Look): Promise<ConsolePage> {
  await setLook(page, look);
  page.setDefaultTimeout(PATIENCE_MS);
  const reports: string[] = [];
  page.on("pageerror", (error) => reports.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (/Content Security Policy|Trusted ?Types|Refused to/i.test(message.text())) {
      reports.push(message.text());
    }
  });
  return { page, reports };
}

/** Opens a path below `/ui` within the page, and waits for its content. */
export async function goTo({ page }: ConsolePage, path: string): Promise<void> {
  await page.evaluate(
    `history.pushState(null, "", ${JSON.stringify(`/ui${path}`)}); dispatchEvent(new PopStateEvent("popstate"))`,
  );
  await page.locator("main#content.body h1").first().waitFor({ state: "attached" });
  await page.locator("main .loading").first().waitFor({ state: "detached" });
}

/** Paths of all sections in the rail. */
export async function listSections(console: ConsolePage): Promise<string[]> {
  const READ = `[...document.querySelectorAll("nav a[href^='/ui/']")].map((one) => one.getAttribute("href").slice(3))`;
  const found = new Set<string>();
  for (const area of (await console.page.evaluate(READ)) as string[]) {
    await goTo(console, area);
    for (const path of (await console.page.evaluate(READ)) as string[]) found.add(path);
  }
  return [...found];
}

/** The themes differ only in colours: the dark one is checked for its contrast alone. */
const DARK_RULES = ["color-contrast"];

/** The answer of `EXAMINE`. */
interface Examined {
  isWider: boolean;
  hasRun: boolean;
  elements: number;
  isDark: boolean;
}

/**
 * Reads what each page must not show. Colours in transition have no contrast to measure: from the first check on a document
 * has no transitions, also of what changes while it is measured.
 */
const EXAMINE = `(() => {
  if (globalThis.stillSheet === undefined) {
    globalThis.stillSheet = new CSSStyleSheet();
    globalThis.stillSheet.replaceSync("*, ::before, ::after { transition: none !important }");
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, globalThis.stillSheet];
  }
  const moving = document.getAnimations()
    .filter((one) => one.effect.getComputedTiming().endTime !== Infinity)
    .map((one) => one.finished);
  return Promise.allSettled(moving).then(() => ({
    isWider: document.documentElement.scrollWidth > innerWidth,
    hasRun: globalThis.ran !== undefined,
    elements: document.querySelectorAll("img[src='x']").length,
    isDark: matchMedia("(prefers-color-scheme: dark)").matches,
  }));
})()`;

/** Asserts that the page is accessible, within its window, without policy reports, and that no text of users ran. */
export async function checkPage({ page, reports }: ConsolePage, what: string): Promise<void> {
  assert.deepEqual(reports, [], `${what}: reports`);
  const seen = (await page.evaluate(EXAMINE)) as Examined;
  assert.equal(seen.isWider, false, `${what}: wider than its window`);
  assert.equal(seen.hasRun, false, `${what}: a script of a user ran`);
  assert.equal(seen.elements, 0, `${what}: a text of a user became an element`);
  const violations = await findViolations(page, seen.isDark ? DARK_RULES : undefined);
  assert.deepEqual(violations, [], `${what}: accessibility`);
}

/** Replaces the text of the editor of code on the page, as a paste would. */
export async function replaceText(page: Page, text: string): Promise<void> {
  await page.locator(".cm-content").click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

/** Writes a picture of the page into the folder of PLATFORM_TEST_PICTURES, if it is set. */
export async function takePicture({ page }: ConsolePage, name: string): Promise<void> {
  const folder = process.env["PLATFORM_TEST_PICTURES"];
  if (folder !== undefined) await page.screenshot({ path: `${folder}/${name}.png` });
}
