// The API of a project in the console: an operation is tried, and its answer stands beside its trace.
import { test } from "node:test";
import { chromiumSkip } from "@platform/kernel/testing";
import { checkPage, openPlatform, goTo, takePicture } from "./chromium.ts";
import { developer, openIn, PAGE_LOOKS, useDeveloper } from "./developer.ts";

useDeveloper();

test(
  "an operation is tried, as nobody and as the application",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(t, developer.browser, developer.platform);
    const { page } = console;
    await goTo(console, "/projects/shop");
    await page.getByRole("link", { name: "API of the project" }).click();
    await page.getByRole("table", { name: "Operations" }).getByText("/greeting").click();
    const pane = page.getByRole("complementary", { name: "Details" });
    await pane.getByRole("button", { name: "Send" }).click();
    await pane.getByText("200", { exact: true }).first().waitFor();
    await pane.getByRole("region", { name: "Answer" }).getByText("hello").waitFor();
    await pane.getByRole("table", { name: "Spans" }).getByText("shop", { exact: true }).waitFor();
    await checkPage(console, "an operation that was tried");
    await takePicture(console, "try");
    await page.getByRole("table", { name: "Operations" }).getByText("/broken").click();
    await pane.getByRole("button", { name: "the project's application" }).click();
    await pane.getByRole("button", { name: "Send" }).click();
    await pane.getByText("500", { exact: true }).first().waitFor();
    await pane.getByLabel("Scopes of the token").fill("users:write");
    await pane.getByRole("button", { name: "Send" }).click();
    await pane.locator(".problem").waitFor();
  },
);

for (const look of PAGE_LOOKS) {
  test(
    `the API page is accessible and within its window: ${look.name}`,
    { skip: chromiumSkip },
    async (t) => {
      const console = await openIn(t, look, "/projects/shop/api");
      await console.page.getByRole("table").first().waitFor();
      await checkPage(console, `API, ${look.name}`);
      await goTo(console, `/projects/shop/api?op=${encodeURIComponent("GET /greeting")}`);
      await checkPage(console, `an operation, ${look.name}`);
      await takePicture(console, `try-${look.width}-${look.language}`);
      await console.page.evaluate("localStorage.clear()");
    },
  );
}
