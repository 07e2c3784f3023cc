// Memory for request bodies, in the router and in direct operations.
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as openRequest, type ClientRequest } from "node:http";
import { test, type TestContext } from "node:test";
import { z } from "zod";
import { HealthRegistry } from "../../src/health/index.ts";
import {
  BodyBudget,
  createApi,
  defineDirectRoute,
  defineRoute,
  listenHttp,
} from "../../src/http/index.ts";
import { createIdSource } from "../../src/ids/index.ts";
import { createLogger } from "../../src/log/index.ts";
import { MetricRegistry } from "../../src/metrics/index.ts";
import { systemClock } from "../../src/time/index.ts";
import { createServiceTracer } from "../../src/trace/index.ts";

const BYTES = 1_000;
const PATHS = ["/direct", "/routed"];

async function start(t: TestContext): Promise<{ url: string; budget: BodyBudget }> {
  const budget = new BodyBudget({ bytesMax: BYTES, bytesPerClientMax: BYTES });
  const metrics = new MetricRegistry();
  const resource = { service: "test", version: "1" };
  const ids = createIdSource({ clock: systemClock });
  const operation = { method: "POST", access: "public", body: z.unknown() } as const;
  const answer = z.object({ ok: z.boolean() });
  const handle = async () => ({ ok: true });
  const api = createApi({
    ...resource,
    routes: [
      defineDirectRoute({ ...operation, path: "/direct", summary: "Direct", answer, handle }),
      defineRoute({ ...operation, path: "/routed", summary: "Routed", answer, handle }),
    ],
    guard: () => ({ kind: "anonymous" }),
    bodyBudget: budget,
    health: new HealthRegistry(resource),
    metrics,
    logger: createLogger({ service: "test", level: "error", format: "json", write: () => {} }),
    tracer: createServiceTracer({
      resource,
      endpoint: undefined,
      metrics,
      ids,
      clock: systemClock,
    }),
    clock: systemClock,
  });
  const address = { host: "127.0.0.1", port: 0 };
  const { fetch: handler, intercept } = api;
  const listener = await listenHttp({ address, fetch: handler, intercept, metrics });
  t.after(() => listener.close(0));
  return { url: listener.url, budget };
}

function post(url: string, body: string): Promise<Response> {
  const headers = { "content-type": "application/json" };
  return fetch(url, { method: "POST", headers, body });
}

async function holdUpload(url: string, headers: Record<string, string>): Promise<ClientRequest> {
  const upload = openRequest(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
  });
  upload.on("error", () => {});
  upload.write(`"${"x".repeat(700)}`);
  await once(upload, "socket");
  return upload;
}

for (const path of PATHS) {
  for (const [kind, headers] of [
    ["a declared length", { "content-length": "800" }],
    ["chunks", { "transfer-encoding": "chunked" }],
  ] as const) {
    test(`${path}: a body with ${kind} takes memory until it ends, others get 503`, async (t) => {
      const { url, budget } = await start(t);
      const upload = await holdUpload(`${url}${path}`, headers);
      while (budget.bytes === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      for (const other of PATHS) {
        const refused = await post(`${url}${other}`, `"${"y".repeat(400)}"`);
        assert.equal(refused.status, 503);
        assert.equal(refused.headers.get("retry-after"), "2");
        const { code } = (await refused.json()) as { code: string };
        assert.equal(code, "overloaded");
        assert.equal((await post(`${url}${other}`, `"${"y".repeat(100)}"`)).status, 200);
      }
      upload.destroy();
      while (budget.bytes > 0) await new Promise((resolve) => setTimeout(resolve, 5));
      assert.equal((await post(`${url}${path}`, `"${"y".repeat(900)}"`)).status, 200);
      assert.equal(budget.bytes, 0);
    });
  }
}

test("a client has its share, whatever the others use", () => {
  const budget = new BodyBudget({ bytesMax: 100, bytesPerClientMax: 50 });
  const [ada, bob, carl] = ["ada", "bob", "carl"].map((name) => budget.open(name));
  assert.ok(ada!.tryAdd(50));
  assert.ok(!ada!.tryAdd(1), "the share of the client");
  assert.ok(bob!.tryAdd(40));
  assert.ok(!carl!.tryAdd(20), "all bodies");
  ada!.release();
  assert.ok(carl!.tryAdd(20));
  assert.equal(budget.bytes, 60);
});
