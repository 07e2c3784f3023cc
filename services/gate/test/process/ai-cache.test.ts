// Stored answers of a whole gateway with two workers: vectors of a service, its failures, invalidation by path.
import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import { test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { createModelProvider } from "../fixture/model-provider.ts";
import { serve } from "../fixture/serve.ts";

const FIRST = "How do I reset my password?";
const ALIKE = "What is the way to reset my password?";
const ALIKE_TOO = "I need help, can you tell me how to reset my password?";

/** A service of embeddings whose vectors are set by the test. */
interface Vectors {
  asked: { model: string; input: string; key: string | undefined }[];
  answer: (input: string) => unknown;
}

async function serveVectors(t: Parameters<typeof serve>[0], vectors: Vectors): Promise<string> {
  const server = createServer((request: IncomingMessage, response) => {
    let text = "";
    request.on("data", (piece: Buffer) => (text += piece.toString()));
    request.on("end", () => {
      const { model, input } = JSON.parse(text) as { model: string; input: string };
      vectors.asked.push({ model, input, key: request.headers.authorization });
      const answer = vectors.answer(input);
      response.writeHead(answer === undefined ? 500 : 200, { "content-type": "application/json" });
      response.end(JSON.stringify({ data: [{ embedding: answer }] }));
    });
  });
  return `${await serve(t, server)}/v1/embeddings`;
}

/** The similarity of a hit; null for others. */
async function askFor(url: string, text: string): Promise<string | null> {
  const answer = await fetch(`${url}/ai/v1/chat/completions`, {
    method: "POST",
    headers: { connection: "close" },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content: text }] }),
  });
  assert.match(await answer.text(), /Hello, world!/);
  assert.equal(answer.status, 200);
  return answer.headers.get("x-cache") === "HIT" ? answer.headers.get("x-cache-similarity") : null;
}

for (const runtime of runtimesOfRules) {
  test(`answers are shared by workers, found by vectors, saved and removed by path (${runtime.name})`, async (t) => {
    const provider = createModelProvider({ usage: { input: 1_000_000, output: 0 } });
    const target = await serve(t, provider.server);
    const vectors: Vectors = { asked: [], answer: () => [0.6, 0.8] };
    const url = await serveVectors(t, vectors);
    const gate = await startGate(t, {
      runtime,
      folder: makeFolder(t),
      env: { VECTOR_KEY: "secret-of-vectors" },
      config: {
        workers: 2,
        ai_prices: { m: { input: 2, output: 0 } },
        embedding: { url, model: "e-1", key_env: "VECTOR_KEY" },
        routes: [{ prefix: "/ai/", strip_prefix: true, target, enable_semantic_cache: true }],
      },
    });
    const ask = (text: string): Promise<string | null> => askFor(gate.url, text);
    assert.equal(await ask(FIRST), null);
    assert.deepEqual(vectors.asked[0], {
      model: "e-1",
      input: FIRST,
      key: "Bearer secret-of-vectors",
    });
    await waitFor(async () => (await ask(ALIKE)) !== null);
    const asked = provider.received.length;
    // On both workers, and by the same words without a question to the service.
    const before = vectors.asked.length;
    for (let count = 0; count < 12; count++) assert.equal(await ask(FIRST), "1.00");
    assert.equal(vectors.asked.length, before);
    for (let count = 0; count < 6; count++) assert.equal(await ask(ALIKE_TOO), "1.00");
    assert.equal(provider.received.length, asked);

    vectors.answer = () => [0.1, 0.2, 0.3];
    assert.equal(await ask("Tell me how to do it: I need to reset my password"), null);
    vectors.answer = () => undefined;
    assert.equal(await ask("Explain how one does it: to reset my password"), null);
    await gate.waitForLine(({ msg }) => msg === "the service of embeddings failed");
    assert.equal(await ask(FIRST), "1.00");

    await waitFor(async () => {
      const answer = await fetch(`${gate.url}/api/v1/admin/ai-cost-attribution`);
      const { summary } = (await answer.json()) as { summary: { estimated_savings: number } };
      return summary.estimated_savings >= 2 * 19;
    });
    const removed = await fetch(`${gate.url}/api/v1/admin/cache?prefix=/ai/v1`, {
      method: "DELETE",
    });
    const { entries_invalidated: entries } = (await removed.json()) as {
      entries_invalidated: number;
    };
    assert.ok(entries >= 3, String(entries));
    assert.equal(await ask(FIRST), null);
    // Workers send their figures now and then.
    await waitFor(async () => {
      const metrics = await (await fetch(`${gate.url}/metrics`)).text();
      return /platform_gate_ai_cache_hits_total\{route="\/ai\/",model="m"\} \d\d/.test(metrics);
    });
  });
}
