// From a 500 to the author's line: the gateway's log, the trace over all services, and the detail of a line of the log.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chromiumSkip } from "@platform/kernel/testing";
import { checkPage, goTo, openPlatform, readClicks, takePicture } from "./chromium.ts";
import { developer, openIn, PAGE_LOOKS, useDeveloper } from "./developer.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";

useDeveloper();

/** Calls the route that throws, as a part of a trace. */
async function breakRoute(): Promise<void> {
  const headers = { traceparent: `00-${TRACE}-00f067aa0ba902b7-01` };
  const answer = await developer.platform.ask("/broken", { host: "shop.localhost", headers });
  assert.equal(answer.status, 500);
}

test("from a 500 to the author's line: 2 clicks", { skip: chromiumSkip }, async (t) => {
  await breakRoute();
  const console = await openPlatform(t, developer.browser, developer.platform);
  const { page } = console;
  await goTo(console, "/gateway/log?status=5xx");
  await page.locator("tr[data-row]").first().waitFor();
  await page.evaluate("globalThis.clicks = 0");
  await page.locator("tr[data-row]").first().click();
  await page.getByRole("link", { name: "All of this trace" }).click();
  await page.getByText("main.service.ts:6").first().waitFor();
  assert.ok((await readClicks(console)) <= 2);
  await page.getByText('throw new Error("the shelf is empty")').first().waitFor();
  const spans = page.getByRole("table", { name: "Spans" });
  await spans.getByText("Gateway").first().waitFor();
  await spans.getByText("shop", { exact: true }).first().waitFor();
  assert.equal(await spans.locator(".span-name").first().innerText(), "GET shop.localhost/");
  await page.getByRole("table", { name: "Lines of the log" }).getByText("about to break").waitFor();
  await spans.getByText("shop", { exact: true }).first().click();
  await page.getByRole("complementary").getByText('"http.route"').waitFor();
  await checkPage(console, "a trace");
  await takePicture(console, "trace");
});

test(
  "a line of the log has its error, its fields and a way to the trace",
  { skip: chromiumSkip },
  async (t) => {
    await breakRoute();
    const console = await openPlatform(t, developer.browser, developer.platform);
    const { page } = console;
    await goTo(console, `/runtime/logs?level=error&q=${TRACE}`);
    await page.locator(".tail-row").first().click();
    const pane = page.getByRole("complementary", { name: "Details" });
    await pane.getByText("main.service.ts:6").first().waitFor();
    await pane.getByText("Frames of the project").waitFor();
    await checkPage(console, "a line with an error");
    await takePicture(console, "log-line");
    await pane.getByRole("link", { name: "All of this trace" }).click();
    await page.waitForURL(`**/runtime/traces/${TRACE}`);
  },
);

for (const look of PAGE_LOOKS) {
  test(
    `a trace is accessible and within its window: ${look.name}`,
    { skip: chromiumSkip },
    async (t) => {
      await breakRoute();
      const console = await openIn(t, look, `/runtime/traces/${TRACE}`);
      await console.page.getByRole("table").first().waitFor();
      await checkPage(console, `a trace, ${look.name}`);
      await takePicture(console, `trace-${look.width}-${look.language}`);
      await goTo(console, "/runtime/traces/nothing");
      await checkPage(console, `a trace that is not known, ${look.name}`);
      await console.page.evaluate("localStorage.clear()");
    },
  );
}
