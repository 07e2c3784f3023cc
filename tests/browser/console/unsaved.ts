// Unsaved text of an editor in Chromium: kept unless the user leaves it, by link, key, history, palette, and a new document.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { chromiumSkip } from "@platform/kernel/testing";
import { checkPage, LOOKS, takePicture, type ConsolePage, type Look } from "./chromium.ts";
import { ask, joinGateway, openGateway } from "./gateway-alone.ts";

const PATH = "/gateway/routes/%2Forders/edit";
const TITLE = "Leave without saving?";

/** Opens the editor of a route after the list of routes. */
async function openEditor(t: TestContext, look: Look): Promise<ConsolePage> {
  const gate = await joinGateway();
  await ask(gate, "POST", "/routes", { prefix: "/orders", target: "http://127.0.0.1:9" });
  const opened = await openGateway(t, gate, look, "/gateway/routes");
  const { page } = opened;
  await page.locator("main").getByRole("link", { name: "/orders" }).click();
  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByLabel("Log each request").waitFor();
  return opened;
}

for (const look of LOOKS) {
  test(
    `unsaved text is not lost without a question: ${look.name}`,
    { skip: chromiumSkip },
    async (t) => {
      const opened = await openEditor(t, look);
      const { page } = opened;
      const box = page.getByLabel("Log each request");
      const dialog = page.getByRole("dialog", { name: TITLE });
      const isAt = (path: string): boolean => page.url().endsWith(`/ui${path}`);
      const stay = async (what: string): Promise<void> => {
        await dialog.waitFor();
        if (what === "link") {
          await checkPage(opened, "question");
          await takePicture(opened, `unsaved-${look.width}`);
        }
        await dialog.getByRole("button", { name: "Stay" }).click();
        await dialog.waitFor({ state: "detached" });
        assert.ok(isAt(PATH), `${what}: ${page.url()}`);
        assert.ok(await box.isChecked(), `${what}: the change is there`);
      };
      await box.check();
      await page.getByRole("link", { name: "Cancel" }).click();
      await stay("link");
      await page.evaluate("document.activeElement.blur()");
      await page.keyboard.press("g");
      await page.keyboard.press("o");
      await stay("keys");
      await page.keyboard.press("Control+k");
      await page.getByRole("dialog").getByRole("combobox").fill("upstreams");
      await page.keyboard.press("Enter");
      await stay("palette");
      await page.evaluate("history.back()");
      await stay("back");
      await page.evaluate("history.go(-2)");
      await stay("two steps back");
      // The other view of the same text is no other page.
      await page.getByRole("button", { name: "JSON" }).click();
      await page.getByRole("textbox", { name: "Route as JSON" }).waitFor();
      await page.getByRole("button", { name: "Fields" }).click();
      assert.ok(await box.isChecked());
      // A new document: the browser asks.
      const asked = page.waitForEvent("dialog");
      const reloaded = page.evaluate("location.reload()").catch(() => undefined);
      const question = await asked;
      assert.equal(question.type(), "beforeunload");
      await question.dismiss();
      await reloaded;
      assert.ok(await box.isChecked(), "the document stays");

      await page.evaluate("history.go(-2)");
      await dialog.getByRole("button", { name: "Leave" }).click();
      await page.getByRole("button", { name: "New route" }).waitFor();
      assert.ok(isAt("/gateway/routes"), page.url());
      await page.evaluate("history.forward()");
      await page.getByRole("link", { name: "Edit" }).waitFor();
      assert.ok(isAt("/gateway/routes/%2Forders"), "history is whole");
    },
  );
}

test(
  "a saved text, and one that is as it was, are left at once",
  { skip: chromiumSkip },
  async (t) => {
    const { page } = await openEditor(t, LOOKS[0]);
    page.on("dialog", () => assert.fail("the browser asks"));
    const box = page.getByLabel("Log each request");
    await box.check();
    await box.uncheck();
    await page.getByRole("link", { name: "Cancel" }).click();
    await page.getByRole("link", { name: "Edit" }).click();
    await box.check();
    await page.getByText(/changes /).waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The route /orders was saved.").waitFor();
    await page.getByRole("link", { name: "Edit" }).waitFor();
    assert.equal(await page.getByRole("dialog").count(), 0);
    await page.reload();
    await page.getByRole("link", { name: "Edit" }).waitFor();
  },
);
