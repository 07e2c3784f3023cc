// Pages that services make themselves, in Chromium: the index page and the API documentation have the console's fonts and colours.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test, type TestContext } from "node:test";
import type { Browser } from "playwright-core";
import { HealthRegistry } from "@platform/kernel/health";
import { createApi, listenHttp } from "@platform/kernel/http";
import { createIdSource } from "@platform/kernel/ids";
import { createLogger } from "@platform/kernel/log";
import { MetricRegistry } from "@platform/kernel/metrics";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { systemClock } from "@platform/kernel/time";
import { createTracer } from "@platform/kernel/trace";
import { createIndexRoute } from "../../services/gate/src/http/index-api.ts";
import type { ServiceState } from "../../services/runtime/src/data-folder/running-file.ts";
import { formatIndexPage } from "../../services/runtime/src/index-page.ts";
import {
  checkPage,
  HOSTILE,
  LOOKS,
  openAt,
  takePicture,
  type ConsolePage,
} from "./console/chromium.ts";

const PAPER = { light: "rgb(243, 243, 237)", dark: "rgb(15, 18, 16)" };

let browser: Browser;

before(async () => {
  if (chromiumSkip === false) browser = await startChromium();
});

after(() => browser?.close());

for (const look of LOOKS) {
  test(`the API documentation: ${look.name}`, { skip: chromiumSkip }, async (t) => {
    const url = await serve(t);
    const opened = await openAt(t, browser, `${url}/api/docs`, look);
    const { page } = opened;
    await page.getByText("/api/docs/openapi.json").click();
    await page.getByRole("button", { name: "Send" }).first().click();
    await page.getByText('"openapi"').waitFor();
    await checkPage(opened, "documentation");
    await expectLook(opened, look.colorScheme);
    await takePicture(opened, `docs-${look.width}`);
  });

  test(`the index page: ${look.name}`, { skip: chromiumSkip }, async (t) => {
    const url = await serve(t);
    const opened = await openAt(t, browser, url, look);
    await opened.page.getByText(HOSTILE).waitFor();
    await checkPage(opened, "index page");
    await expectLook(opened, look.colorScheme);
    await takePicture(opened, `index-${look.width}`);
  });
}

/** Starts a service with the index page of a platform, one of whose services has failed with a hostile text. */
async function serve(t: TestContext): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "served-pages-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const index = join(folder, "index.html");
  const probes = "http://127.0.0.1:8080";
  const common = { listeners: [], probe_url: probes, state: "running" as const };
  const services: ServiceState[] = [
    { ...common, name: "gate", label: "gateway", url: probes, restarts: 0 },
    {
      ...common,
      name: "auth",
      label: "identity",
      url: "http://127.0.0.1:8082",
      restarts: 2,
      last_failure: HOSTILE,
    },
  ];
  const state = { pid: 1, version: "1.0.0", started_at: "2026-01-01T00:00:00.000Z", services };
  const trial = { command: `curl -s ${probes}/hello`, meaning: "A request through the gateway." };
  writeFileSync(index, formatIndexPage(state, [trial], "./data"));
  const api = createApi({
    service: "demo",
    version: "1.0.0",
    routes: [createIndexRoute(() => index)],
    guard: () => ({ kind: "operator" }),
    health: new HealthRegistry({ service: "demo", version: "1.0.0" }),
    metrics: new MetricRegistry(),
    logger: createLogger({ service: "demo", write: () => undefined }),
    tracer: createTracer({ ids: createIdSource(), clock: systemClock }),
    clock: systemClock,
  });
  const listener = await listenHttp({ address: { host: "127.0.0.1", port: 0 }, fetch: api.fetch });
  t.after(() => listener.close(500));
  return listener.url;
}

test(
  "the API documentation asks for a token that its document requires",
  { skip: chromiumSkip },
  async (t) => {
    const url = await serve(t);
    const page = await browser.newPage();
    t.after(() => page.close());
    await page.route("**/api/docs/openapi.json", async (route) => {
      const isAllowed = route.request().headers()["authorization"] === "Bearer the-token";
      if (isAllowed) await route.continue();
      else await route.fulfill({ status: 401, body: "{}" });
    });
    await page.goto(`${url}/api/docs`);
    const token = page.getByPlaceholder("Bearer token");
    await token.fill("another");
    await page.getByRole("button", { name: "Show" }).click();
    await page.getByText("It was refused (401).").waitFor();
    await token.fill("the-token");
    await token.press("Enter");
    await page.getByText("/api/docs/openapi.json").waitFor();
    assert.equal(await token.inputValue(), "the-token", "operations are sent with it");
  },
);

async function expectLook({ page }: ConsolePage, scheme: "light" | "dark"): Promise<void> {
  const paper = await page.evaluate("getComputedStyle(document.body).backgroundColor");
  assert.equal(paper, PAPER[scheme]);
  const hasFonts = await page.evaluate(
    `document.fonts.ready.then(() => ["Instrument Sans", "Geist Mono"].every((name) =>
      [...document.fonts].some(({ family, status }) => family.includes(name) && status === "loaded")))`,
  );
  assert.equal(hasFonts, true, "the fonts are loaded");
}
