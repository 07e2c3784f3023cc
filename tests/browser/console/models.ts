// Traffic to models in the console: cost and tokens by tenant and route, a budget, and the guards of routes.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { chromiumSkip } from "@platform/kernel/testing";
import { checkPage, goTo, openPlatform, takePicture } from "./chromium.ts";
import { developer, openIn, PAGE_LOOKS, useDeveloper } from "./developer.ts";

const PATH = "/ai/v1/chat/completions";
const ASK = { model: "gpt-4o", messages: [{ role: "user", content: "Is the shop open?" }] };

useDeveloper();

/** A route to a provider of models that reports 1 000 tokens in and 500 out for each request. */
async function addModels(t: TestContext): Promise<void> {
  const provider = createServer((request, response) => {
    request.resume();
    const usage = { prompt_tokens: 1_000, completion_tokens: 500, total_tokens: 1_500 };
    const message = { role: "assistant", content: "Yes." };
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({ id: "1", object: "chat.completion", model: "gpt-4o", choices, usage }),
    );
  }).listen(0, "127.0.0.1");
  t.after(() => provider.close());
  await once(provider, "listening");
  const { port } = provider.address() as AddressInfo;
  await developer.platform.addRoute({
    prefix: "/ai/",
    target: `http://127.0.0.1:${port}`,
    strip_prefix: true,
    ai: true,
    prompt_guard: true,
    prompt_guard_action: "report",
    pii_redact: true,
    auth: { type: "none" },
  });
}

async function askModel(): Promise<number> {
  const answer = await developer.platform.ask(PATH, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(ASK),
  });
  return answer.status;
}

test(
  "cost and tokens are shown, and a budget is set and removed",
  { skip: chromiumSkip },
  async (t) => {
    await addModels(t);
    assert.equal(await askModel(), 200);
    const console = await openPlatform(t, developer.browser, developer.platform);
    const { page } = console;
    await goTo(console, "/gateway/models");
    const tenants = page.getByRole("table", { name: "Tenants" });
    await tenants.getByText("anonymous").waitFor();
    await tenants.getByText(/^1.500$/).waitFor();
    await page.getByRole("table", { name: "Cost by route" }).getByText("/ai/").waitFor();
    const routes = page.getByRole("table", { name: "AI routes" });
    await routes.getByText("reports").waitFor();
    await routes.getByText("replaced").waitFor();
    await page.getByRole("button", { name: "Set a budget…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Tenant").fill("anonymous");
    await dialog.getByLabel("USD per day (UTC)").fill("much");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.locator(".hint-bad, .problem").first().waitFor();
    await dialog.getByLabel("USD per day (UTC)").fill("");
    await dialog.getByLabel("Tokens in any minute").fill("0");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    await tenants.getByText("0 tokens a minute").waitFor();
    await checkPage(console, "models with a budget");
    await takePicture(console, "models");
    assert.equal(await askModel(), 429);
    await tenants.getByRole("button", { name: "Remove…" }).click();
    await dialog.getByRole("textbox").fill("anonymous");
    await dialog.getByRole("button", { name: "Remove" }).click();
    await tenants.getByText("no limit").waitFor();
    assert.equal(await askModel(), 200);
  },
);

for (const look of PAGE_LOOKS) {
  test(
    `models are accessible and within their window: ${look.name}`,
    { skip: chromiumSkip },
    async (t) => {
      const console = await openIn(t, look, "/gateway/models?range=30");
      await checkPage(console, `models, ${look.name}`);
      await takePicture(console, `models-${look.width}-${look.language}`);
      await console.page.evaluate("localStorage.clear()");
    },
  );
}
