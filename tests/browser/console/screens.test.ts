// Every screen of the platform in Chromium, in German, with long names and with empty lists: accessible, within its window.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { Platform } from "../../identity/platform.ts";
import {
  checkPage,
  goTo,
  listSections,
  openPlatform,
  takePicture,
  type ConsolePage,
} from "./chromium.ts";

/** Appearances that the tests of single screens do not have. */
const LOOKS = [
  { name: "dark, 1440 px", width: 1440, height: 900, colorScheme: "dark" },
  { name: "light, 390 px", width: 390, height: 844, colorScheme: "light" },
] as const;
const GERMAN = `localStorage.setItem("platform.console", JSON.stringify({ language: "de" }))`;
const LONG = "averylongnamewithoutanyplacetobreak".repeat(5);
/** Pages that no rail lists. */
const OTHERS = [
  "/",
  "/access",
  "/access/applications",
  "/settings",
  "/gateway/routes/new",
  "/gateway/routes/new?as=json",
  `/gateway/routes/%2F${LONG}`,
  `/gateway/routes/%2F${LONG}/edit`,
  "/gateway/routes/nothing",
  `/messaging/topics/${LONG}/tail?tenant=`,
  `/messaging/topics/${LONG}/browse?tenant=`,
  "/messaging/topics/nothing/tail",
  "/gateway/log?filter=nothing",
];
/** Tables whose name, the first column that is not a code or a box, is too narrow to be read. */
const NARROW = `[...document.querySelectorAll("main table:not(.ledger)")]
  .filter((one) => [...one.querySelectorAll("th:not(.col-check, .w-xs)")].find((each) => each.offsetWidth > 0)?.offsetWidth < 90)
  .map((one) => one.getAttribute("aria-label"))`;
const PROJECT = `server { port: 3000 }
every 1h ({ log }) { log.info("counted"); }
`;

let browser: Browser;
let platform: Platform;

before(async () => {
  if (chromiumSkip !== false) return;
  [platform, browser] = await Promise.all([Platform.start({ project: PROJECT }), startChromium()]);
  await platform.addRoute({
    prefix: `/${LONG}`,
    target: `http://127.0.0.1:9/${LONG}`,
    access_log: true,
    auth: { type: "none" },
  });
  await platform.ask(`/${LONG}/${LONG}`);
  await platform.gateway("POST", "/api/v1/admin/api-keys", {
    name: LONG.slice(0, 100),
    tenant: "a",
  });
  await platform.storage("PUT", `/${LONG.slice(0, 60)}`);
  await platform.storage("PUT", `/${LONG.slice(0, 60)}/${LONG}/${LONG}.txt`, "text");
  const publish = { topic: LONG, key: LONG, payload: JSON.stringify({ [LONG]: LONG }) };
  await platform.callService(platform.pulse, "PLATFORM_PULSE_TOKEN", "/publish", publish);
});

after(async () => {
  await browser?.close();
  await platform?.stop();
});

for (const look of LOOKS) {
  test(`each screen: ${look.name}`, { skip: chromiumSkip }, async (t) => {
    const console = await openPlatform(t, browser, platform, look);
    await console.page.evaluate(GERMAN);
    await console.page.reload();
    await console.page.locator("html[lang=de] main#content.body").waitFor();
    const faults: string[] = [];
    const check = async (what: string): Promise<void> => {
      try {
        await checkPage(console, what);
        assert.deepEqual(await console.page.evaluate(NARROW), [], `${what}: names without a place`);
      } catch (error) {
        faults.push(String(error));
      }
    };
    const paths = [...OTHERS, ...(await listSections(console))];
    assert.ok(paths.length > 30, `${paths.length} screens`);
    for (const path of paths) {
      await goTo(console, path).catch((error: unknown) => faults.push(`${path}: ${String(error)}`));
      if (path.includes("/tail?")) await checkTailRow(console);
      await check(path);
      await takePicture(console, `screen-${look.width}${path.slice(0, 40).replaceAll("/", "-")}`);
      // The panes of rows: once, as each look takes a minute.
      if (look.width > 390) continue;
      const row = console.page.locator("main :is(tr, button)[data-row]:visible").first();
      if ((await row.count()) === 0) continue;
      await row.click({ position: { x: 4, y: 4 } });
      await console.page.locator("main .loading").first().waitFor({ state: "detached" });
      await check(`${path}, its first row`);
    }
    assert.deepEqual(faults, []);
  });
}

/** Asserts that the payload of a row is painted within its row, also on phones, where it is the second line. */
async function checkTailRow({ page }: ConsolePage): Promise<void> {
  const row = page.locator(".tail-row:visible").first();
  await row.waitFor();
  const [outer, inner] = await Promise.all(
    [row, row.locator(".tail-payload")].map((one) => one.boundingBox()),
  );
  assert.ok(inner!.width > 100 && inner!.height >= 16, "the payload has a place");
  assert.ok(inner!.y + inner!.height <= outer!.y + outer!.height + 1, "it is within its row");
  assert.ok(inner!.x + inner!.width <= outer!.x + outer!.width, "and not cut at its side");
}
