// Models of a route of a whole gateway: their keys, what is billed and saved, and what users may name.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { createModelProvider } from "../fixture/model-provider.ts";
import { serve } from "../fixture/serve.ts";

/** Sums of all routes. */
interface Summary {
  total_tokens: number;
  total_cost_usd: number;
  estimated_savings: number;
  savings_percent: number;
}

async function readSummary(url: string): Promise<Summary> {
  const answer = await fetch(`${url}/api/v1/admin/ai-cost-attribution`);
  return ((await answer.json()) as { summary: Summary }).summary;
}

for (const runtime of runtimesOfRules) {
  test(`models with keys of their own, and what the cheaper one saves (${runtime.name})`, async (t) => {
    const usage = { input: 1_000_000, output: 0 };
    const primary = createModelProvider({ usage });
    const fallback = createModelProvider({ usage });
    const [first, second] = [await serve(t, primary.server), await serve(t, fallback.server)];
    const folder = makeFolder(t);
    const key = join(folder, "large.key");
    writeFileSync(key, "key-of-large\n");
    const routing = {
      primary: { url: `${first}/one`, model: "small", auth: { env: "SMALL_KEY" } },
      fallback: { url: second, model: "large", auth: { file: key, header: "x-api-key" } },
    };
    const gate = await startGate(t, {
      runtime,
      folder,
      env: { SMALL_KEY: "key-of-small" },
      config: {
        ai_prices: { small: { input: 1, output: 1 }, large: { input: 4, output: 4 } },
        routes: [{ prefix: "/ai/", strip_prefix: true, llm_routing: routing }],
      },
    });
    const ask = (): Promise<Response> =>
      fetch(`${gate.url}/ai/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: "Bearer client", "x-api-key": "client" },
        body: JSON.stringify({ model: "any", messages: [{ role: "user", content: "x" }] }),
      });
    const cheap = await ask();
    assert.equal(cheap.headers.get("x-llm-model"), "small");
    assert.equal(cheap.headers.get("x-token-cost"), "1");
    const [received] = primary.received;
    assert.equal(received?.path, "/one/v1/chat/completions");
    assert.equal(received?.headers.authorization, "Bearer key-of-small");
    assert.equal(received?.headers["x-api-key"], undefined);
    assert.equal(received?.headers.host, new URL(first).host);
    assert.equal(received?.headers["accept-encoding"], "identity");
    primary.options = { answer: { status: 500, body: "{}" } };
    const dear = await ask();
    assert.equal(dear.headers.get("x-llm-fallback"), "error");
    assert.equal(dear.headers.get("x-token-cost"), "4");
    assert.equal(fallback.received[0]?.headers["x-api-key"], "key-of-large");
    assert.equal(fallback.received[0]?.headers.authorization, undefined);
    await waitFor(async () => (await readSummary(gate.url)).total_cost_usd === 5);
    assert.deepEqual(await readSummary(gate.url), {
      total_tokens: 2_000_000,
      total_cost_usd: 5,
      estimated_savings: 3,
      savings_percent: 37.5,
    });
  });

  test(`a model whose key is not there is refused (${runtime.name})`, async (t) => {
    const gate = await startGate(t, { runtime, folder: makeFolder(t), config: { routes: [] } });
    const url = "http://127.0.0.1:9";
    const routing = {
      primary: { url, model: "a" },
      fallback: { url, model: "b", auth: { env: "NONE" } },
    };
    const missing = await fetch(`${gate.url}/api/v1/routes`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ prefix: "/x", llm_routing: routing }),
    });
    assert.equal(missing.status, 400);
    assert.match(await missing.text(), /llm_routing\.fallback\.auth\.env.*NONE.*is not set/);
  });
}
