// AI routes of a whole gateway: prices and their file, metrics, recordings.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { createModelProvider } from "../fixture/model-provider.ts";
import { serve } from "../fixture/serve.ts";

const PROMPT = "a prompt that nobody else may read";

for (const runtime of runtimesOfRules) {
  test(`prices come from a file, and a reload with a fault keeps them (${runtime.name})`, async (t) => {
    const provider = createModelProvider({ usage: { input: 1_000_000, output: 0 } });
    const target = await serve(t, provider.server);
    const folder = makeFolder(t);
    const prices = join(folder, "prices.json");
    const recording = join(folder, "recording.jsonl");
    writeFileSync(prices, '{"gpt-*":{"input":1.5,"output":2}}');
    const config = {
      ai_prices: prices,
      record_path: recording,
      routes: [
        {
          prefix: "/",
          target,
          ai: true,
          record: true,
          request_headers: { set: { "accept-encoding": "gzip" } },
        },
        { prefix: "/open/", target, ai: true, record: { prompts: true } },
      ],
    };
    const gate = await startGate(t, { runtime, folder, config });
    const ask = async (prefix = ""): Promise<Response> =>
      fetch(`${gate.url}${prefix}/v1/chat/completions`, {
        method: "POST",
        body: JSON.stringify({ model: "gpt-x", messages: [{ role: "user", content: PROMPT }] }),
      });
    const answer = await ask();
    assert.equal(answer.headers.get("x-token-cost"), "1.5");
    assert.equal(answer.headers.get("content-encoding"), null);
    assert.equal(provider.received[0]?.headers["accept-encoding"], "identity");
    await ask("/open");

    writeFileSync(prices, '{"gpt-*":{"input":3,"outptu":2}}');
    gate.signal("SIGHUP");
    const refused = await gate.waitForLine(({ msg }) => msg.startsWith("reload refused"));
    assert.match(JSON.stringify(refused), /prices\.json:1:\d+/);
    assert.match(JSON.stringify(refused), /outptu/);
    assert.equal((await ask()).headers.get("x-token-cost"), "1.5");

    writeFileSync(prices, '{"gpt-*":{"input":3,"output":2}}');
    gate.signal("SIGHUP");
    await waitFor(async () => (await ask()).headers.get("x-token-cost") === "3");

    await waitFor(async () => {
      const text = await (await fetch(`${gate.url}/metrics`)).text();
      return /platform_gate_ai_tokens_total\{route="\/",model="gpt-x",kind="input"\} \d{7,}/.test(
        text,
      );
    });
    await waitFor(() => readFileSync(recording, "utf8").split("\n").length > 4);
    const lines = readFileSync(recording, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { route: string; request: { body: object } });
    for (const line of lines) {
      const isOpen = line.route === "/open/";
      assert.equal(JSON.stringify(line).includes(PROMPT), isOpen);
      if (!isOpen) assert.equal((line.request.body as { omitted?: string }).omitted, "prompts");
    }
    assert.ok(lines.some(({ route }) => route === "/open/"));
  });

  test(`ai is refused on a route without an upstream, with the reason (${runtime.name})`, async (t) => {
    const upstream = await serve(t, createServer());
    const gate = await startGate(t, {
      runtime,
      config: { routes: [{ prefix: "/x", target: upstream }] },
    });
    const answer = await fetch(`${gate.url}/api/v1/routes`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ prefix: "/a", respond: { status: 200 }, ai: true }),
    });
    assert.equal(answer.status, 400);
    assert.match(await answer.text(), /ai.*is not allowed with respond/);
  });
}
