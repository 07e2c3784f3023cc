// The platform of `developer.test.ts`, and the looks of its pages.
import { before, type TestContext } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, findFreePort } from "@platform/kernel/testing";
import type { Platform } from "../../identity/platform.ts";
import { goTo, openPlatform, type ConsolePage, type Look } from "./chromium.ts";
import { joinInstallation } from "./installation.ts";

const PROJECT = `import { HttpError } from "@platform/service";
server { port: 3000 }
export route GET /greeting () { return "hello" }
export route GET /broken ({ log }) {
  log.warn("about to break", { step: 2 });
  throw new Error("the shelf is empty");
}
`;
/** The looks in which each page is checked, and the language of each. */
export const PAGE_LOOKS: readonly (Look & { language: "en" | "de" })[] = [
  { name: "light, 1440 px", width: 1440, height: 900, colorScheme: "light", language: "en" },
  { name: "light, 1280 px", width: 1280, height: 900, colorScheme: "light", language: "en" },
  { name: "dark, 1024 px", width: 1024, height: 800, colorScheme: "dark", language: "de" },
  { name: "dark, 390 px", width: 390, height: 844, colorScheme: "dark", language: "en" },
  { name: "light, 390 px", width: 390, height: 844, colorScheme: "light", language: "de" },
];

/** The installation, once it runs. */
export const developer = {} as { platform: Platform; browser: Browser; project: string };

/** Starts it before the tests of a module. */
export function useDeveloper(): void {
  before(async () => {
    if (chromiumSkip !== false) return;
    const environment = { PLATFORM_NOTIFY_INBOUND_PORT: String(await findFreePort()) };
    const installation = await joinInstallation({ project: PROJECT, environment });
    Object.assign(developer, installation, { project: "shop" });
  });
}

/** Opens a page of the console in one look, in its language. */
export async function openIn(
  t: Pick<TestContext, "after">,
  look: Look & { language?: "en" | "de" },
  path: string,
): Promise<ConsolePage> {
  const opened = await openPlatform(t, developer.browser, developer.platform, look);
  const { page } = opened;
  if (look.language === "de") {
    await page.evaluate(
      'localStorage.setItem("platform.console", JSON.stringify({ language: "de" }))',
    );
    await page.reload();
    await page.locator("html[lang=de] main#content.body").waitFor();
  }
  await goTo(opened, path);
  return opened;
}
