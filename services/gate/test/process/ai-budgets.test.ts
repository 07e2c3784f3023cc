// Budgets of a whole gateway with two workers: races for the last money, kill -9, and workers that crash.
import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { createModelProvider } from "../fixture/model-provider.ts";
import { serve } from "../fixture/serve.ts";

const BILLING = "/api/v1/admin/ai-billing";
/** Each round starts a gateway. */
const ROUNDS = Number(process.env["PLATFORM_GATE_AI_KILLS"] ?? "2");

interface Billing {
  total_tokens: number;
  total_cost_usd: number;
  per_tenant: Record<string, { tokens: number; cost_usd: number }>;
  budgets: { spent_today_usd: number; reserved_usd: number }[];
}

for (const runtime of runtimesOfRules) {
  test(`32 requests race for money for three on two workers, through kill -9 (${runtime.name})`, async (t) => {
    const provider = createModelProvider({ usage: { input: 0, output: 1 } });
    const target = await serve(t, provider.server);
    const folder = makeFolder(t);
    const config = {
      workers: 2,
      // A request costs what it reserves: one dollar.
      ai_prices: { m: { input: 0, output: 0, request: 1 } },
      routes: [{ prefix: "/", target, ai: true }],
    };
    let spent = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const gate = await startGate(t, { runtime, folder, config });
      const call = async (method: string, path: string, body?: unknown): Promise<Response> =>
        fetch(`${gate.url}${path}`, {
          method,
          headers: { "content-type": "application/json" },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
      const ask = (): Promise<Response> =>
        call("POST", "/v1/chat/completions", {
          model: "m",
          messages: [{ role: "user", content: "x" }],
        });
      const before = (await (await call("GET", BILLING)).json()) as Billing;
      assert.equal(before.total_cost_usd, spent, `round ${round}: nothing is lost by kill -9`);
      const set = await call("POST", BILLING, {
        tenant_id: "anonymous",
        max_cost_per_day_usd: spent + 3,
      });
      assert.equal(set.status, 200);
      const answers = await Promise.all(Array.from({ length: 32 }, ask));
      const passed = answers.filter(({ status }) => status === 200).length;
      assert.equal(passed, 3, `round ${round}`);
      const refused = answers.find(({ status }) => status === 429)!;
      assert.equal(refused.headers.get("x-should-retry"), "false");
      assert.ok(Number(refused.headers.get("retry-after")) > 0);
      const error = (await refused.json()) as { error: { type: string; code: string } };
      assert.equal(error.error.type, "insufficient_quota");
      assert.equal(error.error.code, "insufficient_quota");
      spent += 3;
      gate.signal("SIGKILL");
      await gate.ended;
    }
    assert.equal(provider.received.length, spent);
  });

  test(`a request that kill -9 cuts counts in full; tokens of a tenant are limited (${runtime.name})`, async (t) => {
    let isHeld = true;
    const provider = createModelProvider({
      onEvent: (index) => (index === 0 && isHeld ? new Promise(() => undefined) : undefined),
    });
    const target = await serve(t, provider.server);
    const folder = makeFolder(t);
    const config = {
      workers: 2,
      ai_prices: { m: { input: 0, output: 1_000 } },
      routes: [{ prefix: "/", target, semantic_token_limit_per_min: 5_000 }],
    };
    const first = await startGate(t, { runtime, folder, config });
    const body = { model: "m", messages: [{ role: "user", content: "x" }], max_tokens: 2_000 };
    const ask = (url: string, stream: boolean): Promise<Response> =>
      fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        body: JSON.stringify({ ...body, stream }),
      });
    const cut = await ask(first.url, true);
    assert.equal(cut.headers.get("x-token-cost"), "2");
    const second = await ask(first.url, true);
    assert.equal(second.status, 200);
    const limited = await ask(first.url, true);
    assert.equal(limited.status, 429);
    const error = (await limited.json()) as { error: { code: string } };
    assert.equal(error.error.code, "rate_limit_exceeded");
    assert.match(String(limited.headers.get("ratelimit-policy")), /"tokens";q=5000;w=60/);
    first.signal("SIGKILL");
    await first.ended;
    await cut.body?.cancel().catch(() => undefined);
    await second.body?.cancel().catch(() => undefined);
    isHeld = false;
    const again = await startGate(t, { runtime, folder, config });
    const billing = (await (await fetch(`${again.url}${BILLING}`)).json()) as Billing;
    assert.equal(billing.per_tenant["anonymous"]?.cost_usd, 4);
    const plain = await ask(again.url, false);
    assert.equal(plain.headers.get("x-token-cost"), "0.005");
    await waitFor(async () => {
      const now = (await (await fetch(`${again.url}${BILLING}`)).json()) as Billing;
      return now.total_cost_usd === 4.005;
    });
    const costs = (await (await fetch(`${again.url}/api/v1/admin/ai-cost-attribution`)).json()) as {
      routes: { prefix: string; total_cost_usd: number }[];
    };
    assert.deepEqual(
      costs.routes.map(({ prefix, total_cost_usd: cost }) => [prefix, cost]),
      [["/", 4.005]],
    );
  });
}
