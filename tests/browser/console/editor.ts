// The editor of code in Chromium: typing, undo, problems, the way out by keyboard, and the page without its program.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { Page } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import { checkPage, goTo, LOOKS, takePicture, type ConsolePage, type Look } from "./chromium.ts";
import { joinGateway, openGateway } from "./gateway-alone.ts";

const LABEL = "Route as JSON";
const PATH = "/gateway/routes/new?as=json";
const MIB = 1024 * 1024;

/** Opens the page of a new route. */
async function openEditor(
  t: TestContext,
  look: Look,
  prepare?: (page: Page) => Promise<unknown>,
): Promise<ConsolePage> {
  const opened = await openGateway(t, await joinGateway(), look, "/gateway/routes");
  await prepare?.(opened.page);
  await goTo(opened, PATH);
  return opened;
}

for (const look of LOOKS) {
  test(`text is typed, undone and checked: ${look.name}`, { skip: chromiumSkip }, async (t) => {
    const opened = await openEditor(t, look);
    const { page } = opened;
    const editor = page.getByRole("textbox", { name: LABEL });
    await page.locator(".cm-content").waitFor();
    assert.equal(await editor.count(), 1, "one field");
    await editor.focus();
    // The dry run enables the button, whose colours have no contrast while they change.
    await page.getByText("adds a route").waitFor();
    await checkPage(opened, "editor");

    await page.keyboard.press("ControlOrMeta+a");
    // In one step: the indentation of typed lines depends on how far the text was parsed.
    await page.keyboard.insertText('{\n  "prefix": "/new",,\n}');
    const problem = page.getByRole("button", { name: "Line 2, column 20" });
    await problem.waitFor();
    assert.equal(await editor.getAttribute("aria-invalid"), "true");
    assert.equal(await page.locator(".cm-line.problem-line").textContent(), '  "prefix": "/new",,');
    const save = page.getByRole("button", { name: "Save" });
    assert.equal(await save.getAttribute("aria-disabled"), "true");
    await checkPage(opened, "problem");
    await takePicture(opened, `editor-${look.width}`);

    await problem.click();
    await page.keyboard.press("Delete");
    await page.keyboard.press("Backspace");
    await problem.waitFor({ state: "detached" });
    assert.equal((await editor.innerText()).trim(), '{\n  "prefix": "/new"\n}');
    await page.keyboard.press("ControlOrMeta+z");
    await page.getByText(/^Line 2, column/).waitFor();

    await page.keyboard.press("Tab");
    assert.equal(await editor.evaluate((one) => one.matches(":focus")), false, "Tab leaves");
    await page.keyboard.press("Shift+Tab");
    assert.equal(await editor.evaluate((one) => one.matches(":focus")), true, "and returns");
    const [, id] = /aria-describedby="(\w+)"/.exec(await editor.evaluate((one) => one.outerHTML))!;
    assert.equal(
      await page.locator(`[data-editor] #${id}`).textContent(),
      "Tab leaves the editor.",
    );
  });
}

test(
  "without its program, and for large texts, it is a text area",
  { skip: chromiumSkip },
  async (t) => {
    let loads = 0;
    const program = /code-view.*\.js$/;
    const opened = await openEditor(t, LOOKS[0], (page) =>
      page.route(program, (route) => {
        loads += 1;
        return route.abort();
      }),
    );
    const { page } = opened;
    const area = page.locator(`textarea`);
    await area.fill('{\n"prefix" }');
    await page.getByRole("button", { name: "Line 2" }).click();
    assert.equal(await area.evaluate((one) => one.matches(":focus")), true);
    assert.equal(
      await area.evaluate((one) => (one as { selectionStart?: number }).selectionStart),
      11,
    );
    await checkPage(opened, "text area");
    assert.equal(loads, 1);

    await page.unroute(program);
    await page.reload();
    await page.locator(".cm-content").waitFor();
    await page.locator(".cm-content").fill(`{ "prefix": "${"x".repeat(MIB)}" }`);
    await area.waitFor();
    assert.equal((await area.inputValue()).length, MIB + 16);
  },
);
