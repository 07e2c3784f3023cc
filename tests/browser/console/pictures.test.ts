// Pictures of the developers' pages and the overview in every look, into the folder of PLATFORM_TEST_PICTURES: for people to look
// at. What a machine can see is asserted: accessibility, the width of the window, texts that are cut off.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import { checkPage, goTo, takePicture, type ConsolePage } from "./chromium.ts";
import { findCutTexts } from "./cut-texts.ts";
import { developer, fillItems, openIn, useDeveloper } from "./developer.ts";
import { endInstallation } from "./installation.ts";

const folder = process.env["PLATFORM_TEST_PICTURES"];
const skip = folder === undefined ? "only with PLATFORM_TEST_PICTURES" : chromiumSkip;

const WIDTHS = [390, 1024, 1280, 1440];
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SQL = "select id, email, name from people where id < :max order by id";

/** A page, and what a person does on it before the picture. */
interface Shown {
  name: string;
  path: string;
  act?: (page: Page) => Promise<void>;
}

const escape = async (page: Page): Promise<void> => page.keyboard.press("Escape");
const openFirstRow = async (page: Page): Promise<void> => {
  const row = page.locator("main :is(tr, button)[data-row]:visible").first();
  await row.click({ position: { x: 4, y: 4 } });
  await page.locator("main .loading").first().waitFor({ state: "detached" });
};

const PAGES: readonly Shown[] = [
  { name: "overview", path: "/" },
  { name: "start", path: "/start" },
  { name: "settings", path: "/settings" },
  { name: "applications", path: "/access/applications" },
  { name: "application", path: "/access/applications", act: openFirstRow },
  {
    name: "application-add",
    path: "/access/applications",
    act: openDialog(/^(Add application|Anwendung)/),
  },
  { name: "projects", path: "/projects" },
  { name: "project", path: "/projects/shop" },
  { name: "project-api", path: "/projects/shop/api" },
  { name: "project-try", path: `/projects/shop/api?op=${encodeURIComponent("GET /greeting")}` },
  { name: "environment", path: "/projects/shop/environment" },
  { name: "tables", path: "/projects/shop/data/items" },
  { name: "table", path: "/projects/shop/data/items/people" },
  { name: "row", path: `/projects/shop/data/items/people?row=${encodeURIComponent("[7]")}` },
  {
    name: "sql",
    path: `/projects/shop/sql/items?sql=${encodeURIComponent(SQL)}`,
    act: runStatement,
  },
  { name: "audit", path: "/projects/shop/audit/items" },
  { name: "log", path: "/runtime/logs" },
  { name: "log-line", path: `/runtime/logs?level=error&q=${TRACE}`, act: openLogLine },
  { name: "trace", path: `/runtime/traces/${TRACE}` },
  { name: "schedules", path: "/runtime/schedules" },
  { name: "models", path: "/gateway/models" },
  { name: "gateway-log", path: "/gateway/log?status=5xx", act: openFirstRow },
];

function openDialog(name: RegExp): NonNullable<Shown["act"]> {
  return async (page) => {
    await page.getByRole("button", { name }).click();
    await page.getByRole("dialog").waitFor();
  };
}

async function runStatement(page: Page): Promise<void> {
  await page.locator("main textarea").first().waitFor();
  await page.locator("main input:visible").first().fill("6");
  await page.getByRole("button", { name: /^(Run|Ausführen)/ }).click();
  await page.locator(".data-grid td").first().waitFor();
  await page.locator("main .loading").first().waitFor({ state: "detached" });
}

async function openLogLine(page: Page): Promise<void> {
  await page.locator(".tail-row").first().click();
  await page.getByRole("complementary").getByText("main.service.ts:6").first().waitFor();
}

if (folder !== undefined) {
  useDeveloper(async () => {
    mkdirSync(folder, { recursive: true });
    fillItems();
    const headers = { traceparent: `00-${TRACE}-00f067aa0ba902b7-01` };
    const answer = await developer.platform.ask("/broken", { host: "shop.localhost", headers });
    assert.equal(answer.status, 500);
  });
  after(endInstallation);
}

for (const colorScheme of ["light", "dark"] as const) {
  for (const language of ["en", "de"] as const) {
    test(`each page at each width: ${colorScheme}, ${language}`, { skip }, async (t) => {
      const look = { name: "", width: 1440, height: 900, colorScheme, language };
      const console = await openIn(t, look, "/");
      const faults: string[] = [];
      for (const width of WIDTHS) {
        await console.page.setViewportSize({ width, height: width < 500 ? 844 : 900 });
        for (const shown of PAGES) {
          const what = `${shown.name}-${width}-${colorScheme}-${language}`;
          await show(console, shown, what).catch((error: unknown) => faults.push(String(error)));
        }
      }
      assert.deepEqual(faults, []);
    });
  }
}

async function show(console: ConsolePage, { path, act }: Shown, what: string): Promise<void> {
  const { page } = console;
  // From another page, so that none keeps what was opened on it.
  await goTo(console, "/runtime/services");
  await goTo(console, path);
  await act?.(page);
  await takePicture(console, what);
  try {
    await checkPage(console, what);
    assert.deepEqual(await findCutTexts(page), [], `${what}: cut off`);
  } finally {
    await escape(page);
  }
}
