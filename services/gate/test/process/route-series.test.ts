// Figures of a route by target: attempts, failures, response times and the share of a canary, over reloads.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test, type TestContext } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";

type Values = (number | null)[];

interface Answer {
  step: number;
  from: number;
  targets: { url: string; requests: Values; failures: Values; p99_ms: Values }[];
  p50_ms: Values;
  p99_ms: Values;
  canary?: (number | null)[];
}

const SLOW_MS = 80;
const LATE_MS = 2_000;

async function startUpstream(context: TestContext, status: number, delayMs = 0): Promise<string> {
  const server = createServer((_request, response) => {
    setTimeout(() => response.writeHead(status).end("answer"), delayMs);
  });
  return await serve(context, server);
}

for (const runtime of runtimesOfRules) {
  test(`attempts count for their target, retried ones too, and the canary has its share (${runtime.name})`, async (context) => {
    const [good, bad] = [await startUpstream(context, 200), await startUpstream(context, 503)];
    const slow = await startUpstream(context, 200, SLOW_MS);
    const late = await startUpstream(context, 503, LATE_MS);
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
          { prefix: "/single", target: slow },
          { prefix: "/late", targets: [late, good], retry: { statuses: [503] }, ...breaker },
          { prefix: "/gone", target: "http://127.0.0.1:1", retry: { attempts: 0 } },
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
      async () => ((await read({ prefix: "/plain" })).targets[0]?.requests.length ?? 0) > 1,
      "the first samples",
    );
    await send("/plain", 40);
    await waitFor(async () => {
      const counts = await count({ prefix: "/plain" });
      return isNear(counts[good], [20, 0]) && isNear(counts[bad], [20, 20]);
    }, "attempts by target");
    // The budget of retries allows ten at once.
    await send("/retried", 16);
    await waitFor(async () => {
      const counts = await count({ prefix: "/retried" });
      return isNear(counts[good], [16, 0]) && isNear(counts[bad], [8, 8]);
    }, "retried attempts");
    // Response times are those of the target alone; an attempt without a response has none.
    await send("/single", 10);
    await send("/gone", 10);
    await waitFor(
      async () => isNear((await count({ prefix: "/single" }))[slow], [10, 0]),
      "a slow target",
    );
    const {
      p50_ms: median,
      targets: [single],
    } = await read({ prefix: "/single" });
    for (const values of [median, single!.p99_ms]) {
      // The bounds of ranges lie 26 % apart.
      assert.ok(
        values.some((value) => value !== null && value >= SLOW_MS / 1.26),
        String(values),
      );
    }
    await waitFor(
      async () => isNear(Object.values(await count({ prefix: "/gone" }))[0], [10, 10]),
      "an absent target",
    );
    const gone = await read({ prefix: "/gone" });
    assert.ok([...gone.p50_ms, ...gone.targets[0]!.p99_ms].every((value) => value === null));
    // The time of a retried attempt is its own.
    await send("/late", 4);
    await waitFor(
      async () => isNear((await count({ prefix: "/late" }))[good], [4, 0]),
      "retried attempts",
    );
    const [first, second] = (await read({ prefix: "/late" })).targets.map(({ p99_ms: values }) =>
      Math.max(...values.map((value) => value ?? 0)),
    );
    assert.ok(first! >= LATE_MS / 1.26 && second! < LATE_MS / 1.26, `${first} and ${second} ms`);
    const shares = await read({ prefix: "/canary", host: "shop.example", methods: "POST,GET" });
    assert.equal(
      shares.canary?.findLast((value) => value !== null),
      50,
    );
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
      async () => (await read({ prefix: "/other" })).targets.length === 2,
      "the added route",
    );
    assert.ok(isNear((await count({ prefix: "/plain" }))[bad], [20, 20]));
  });
}
