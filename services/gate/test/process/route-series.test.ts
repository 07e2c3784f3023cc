// Figures of a route by target: attempts, failures and the share of a canary, over reloads and a worker's death.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { waitFor } from "../fixture/condition.ts";
import { runtimesOfRules, startGate } from "../fixture/gate-process.ts";

interface Answer {
  step: number;
  from: number;
  targets: { url: string; requests: (number | null)[]; failures: (number | null)[] }[];
  canary?: (number | null)[];
}

async function startUpstream(context: TestContext, status: number): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(status).end("answer");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

for (const runtime of runtimesOfRules) {
  test(`attempts count for their target, retried ones too, and the canary has its share (${runtime.name})`, async (context) => {
    const [good, bad] = [await startUpstream(context, 200), await startUpstream(context, 503)];
    const targets_weighted = [good, bad].map((url) => ({ url, weight: 50 }));
    const breaker = { circuit_breaker: false };
    const gate = await startGate(context, {
      runtime,
      config: {
        workers: 2,
        routes: [
          { prefix: "/plain", targets: [good, bad], ...breaker },
          { prefix: "/retried", targets: [good, bad], retry: { statuses: [503] }, ...breaker },
          {
            prefix: "/canary",
            methods: ["GET", "POST"],
            host: "Shop.Example",
            targets_weighted,
            canary_auto_promote: true,
            canary_promote_sec: 3_600,
            ...breaker,
          },
          { prefix: "/single", target: good },
        ],
      },
    });
    const startedMs = Date.now() - 1_000;
    const read = async (query: Record<string, string>): Promise<Answer> => {
      const all = new URLSearchParams({ from: String(startedMs), ...query });
      const answer = await fetch(`${gate.url}/api/v1/admin/route-series?${all.toString()}`);
      assert.equal(answer.status, 200);
      return (await answer.json()) as Answer;
    };
    // Rates of whole seconds, hence about the numbers of requests.
    const sum = (values: readonly (number | null)[]): number =>
      Math.round(values.reduce((total: number, value) => total + (value ?? 0), 0));
    const count = async (query: Record<string, string>): Promise<Record<string, number[]>> => {
      const { targets } = await read(query);
      return Object.fromEntries(
        targets.map(({ url, requests, failures }) => [url, [sum(requests), sum(failures)]]),
      );
    };
    const isNear = (found: number[] | undefined, expected: number[]): boolean =>
      found !== undefined &&
      found.every((value, index) => Math.abs(value - expected[index]!) <= expected[index]! / 4);

    const send = async (path: string, length: number): Promise<void> => {
      await Promise.all(Array.from({ length }, () => fetch(`${gate.url}${path}`)));
    };
    // The first sample is what later ones are compared with.
    await waitFor(
      "the first samples",
      async () => ((await read({ prefix: "/plain" })).targets[0]?.requests.length ?? 0) > 1,
    );
    await send("/plain", 40);
    await waitFor("attempts by target", async () => {
      const counts = await count({ prefix: "/plain" });
      return isNear(counts[good], [20, 0]) && isNear(counts[bad], [20, 20]);
    });
    // The budget of retries allows ten at once.
    await send("/retried", 16);
    await waitFor("retried attempts", async () => {
      const counts = await count({ prefix: "/retried" });
      return isNear(counts[good], [16, 0]) && isNear(counts[bad], [8, 8]);
    });
    const shares = await read({ prefix: "/canary", host: "shop.example", methods: "POST,GET" });
    assert.equal(
      shares.canary?.findLast((value) => value !== null),
      50,
    );
    assert.deepEqual((await read({ prefix: "/single" })).targets, []);
    const unknown = await fetch(`${gate.url}/api/v1/admin/route-series?prefix=/no&from=0`);
    assert.equal(unknown.status, 404);

    // A change of another route leaves what is known of this one.
    const added = { prefix: "/other", targets: [good, bad] };
    const init = {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(added),
    };
    assert.equal((await fetch(`${gate.url}/api/v1/routes`, init)).status, 200);
    await waitFor(
      "the added route",
      async () => (await read({ prefix: "/other" })).targets.length === 2,
    );
    assert.ok(isNear((await count({ prefix: "/plain" }))[bad], [20, 20]));
  });
}
